"""Rows and model files that the registry's tests start from."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from pytest_django.fixtures import Settings

from integrations.artifacts import StoredArtifact
from registry.lifecycle import Status
from registry.models import ModelVersion
from registry.services import version_register
from tests.accounts.views import conftest as views

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _artifact(content: str = "one") -> StoredArtifact:
    """Return what the store would say of a file, without the file."""
    digest = "sha256:" + hashlib.sha256(content.encode()).hexdigest()
    return StoredArtifact(digest, f"file:///nowhere/{content}", len(content), {"model.onnx": digest[7:]})


def _linear_model(*, opset: int = 17, seed: int = 0) -> bytes:
    """Return an ONNX file that multiplies rows of 4 numbers with a matrix; another seed gives another digest."""
    weights = np.random.default_rng(seed).normal(size=(4, 3)).astype(np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "linear",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["batch", 3])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)
    content: bytes = model.SerializeToString()
    return content


@pytest.fixture
def artifact() -> Callable[..., StoredArtifact]:
    """Return a maker of what the store would say of a file, without the file."""
    return _artifact


@pytest.fixture
def linear_model() -> Callable[..., bytes]:
    """Return a maker of ONNX files."""
    return _linear_model


@pytest.fixture
def store_folder(settings: Settings, tmp_path: Path) -> Path:
    """Give the test an artifact store of its own."""
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"
    return tmp_path / "artifacts"


@pytest.fixture
def register(db: None) -> Callable[..., ModelVersion]:
    """Return a maker of versions without files; they are READY unless told otherwise."""

    def make(model: str = "digits", content: str = "one", status: Status = Status.READY) -> ModelVersion:
        version, _ = version_register(
            model=model, artifact=_artifact(content), source_name="model.onnx", now=NOW, actor="alice"
        )
        if status is not Status.PENDING:
            ModelVersion.objects.filter(pk=version.pk).update(status=status.value, next_check_at=None)
            version.refresh_from_db()
        return version

    return make


@pytest.fixture
def usage_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, ModelVersion], None]]:
    """Return a way to say that something uses a version, as `deployments` does."""
    from registry import usage  # noqa: PLC0415

    uses: dict[int, str] = {}

    def provider(ids: "object") -> list[usage.Use]:
        return [usage.Use(phrase) for pk, phrase in uses.items() if pk in ids]  # type: ignore[operator]

    usage.register(provider)
    yield lambda phrase, version: uses.__setitem__(version.pk, phrase)
    usage.unregister(provider)


browser = views.browser
