"""A cluster that knows some pods by their tokens, and a model that a service of theirs has."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest
from django.core.cache import cache
from pytest_django.fixtures import Settings

from integrations.clusters.base import JobIdentity, WorkloadIdentity
from registry.storage import store
from tests.deployments._support.fakes import FakeCluster


@contextmanager
def cluster_of(
    monkeypatch: pytest.MonkeyPatch,
    workloads: Mapping[str, WorkloadIdentity | JobIdentity],
    modules: Sequence[ModuleType],
) -> Iterator[FakeCluster]:
    """Have `modules` find a cluster that knows these tokens."""
    fake = FakeCluster(workloads=dict(workloads))
    for module in modules:
        monkeypatch.setattr(module, "driver_of", lambda _row: fake)
    cache.clear()
    yield fake
    cache.clear()


def stored_model(settings: Settings, folder: Path, content: bytes) -> str:
    """Store a model's file in a new store, and return its digest."""
    settings.ARTIFACTS_FOLDER = folder / "artifacts"
    with store().begin("model.onnx") as writer:
        writer.write(content)
        return writer.commit().digest
