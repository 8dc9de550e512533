"""Rows and model files that the registry's tests start from."""

import hashlib
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from integrations.artifacts.store import StoredArtifact
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion
from registry.services import version_register
from tests.accounts._support.pages import browser
from tests.registry._support.model_files import linear_model, store_folder

__all__ = ["browser", "linear_model", "store_folder"]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def _artifact(content: str = "one") -> StoredArtifact:
    """Return what the store would say of a file, without the file."""
    digest = "sha256:" + hashlib.sha256(content.encode()).hexdigest()
    return StoredArtifact(digest, f"file:///nowhere/{content}", len(content), {"model.onnx": digest[7:]})


@pytest.fixture
def artifact() -> Callable[..., StoredArtifact]:
    """Return a maker of what the store would say of a file, without the file."""
    return _artifact


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
    from registry import hooks  # noqa: PLC0415

    uses: dict[int, str] = {}

    def provider(ids: "object") -> list[hooks.Use]:
        return [hooks.Use(phrase) for pk, phrase in uses.items() if pk in ids]  # type: ignore[operator]

    hooks.uses.register(provider)
    yield lambda phrase, version: uses.__setitem__(version.pk, phrase)
    hooks.uses.unregister(provider)
