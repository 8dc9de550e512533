import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from integrations.artifacts.store import StoredArtifact
from registry import services, tasks
from registry.models import ModelVersion
from registry.storage import delete_unused, store

pytestmark = pytest.mark.django_db
TWO_HOURS_AGO = timezone.now() - timedelta(hours=2)


@pytest.fixture
def keep(store_folder: Path) -> Callable[..., StoredArtifact]:
    def put(content: bytes, at: datetime | None = None) -> StoredArtifact:
        with store().begin("model.onnx") as writer:
            writer.write(content)
            stored = writer.commit()
        if at is not None:
            os.utime(store().path_of(stored.digest), (at.timestamp(), at.timestamp()))
        return stored

    return put


def register(artifact: StoredArtifact) -> ModelVersion:
    return services.version_register(
        model="digits", artifact=artifact, source_name="m.onnx", now=timezone.now(), actor="alice"
    )[0]


def test_only_what_no_version_has_and_was_left_for_an_hour_goes(keep: Callable[..., StoredArtifact]) -> None:
    used = keep(b"used", TWO_HOURS_AGO)
    register(used)
    left = keep(b"left", TWO_HOURS_AGO)
    fresh = keep(b"fresh")
    assert [each.digest for each in delete_unused(now=timezone.now())] == [left.digest]
    assert [store().path_of(a.digest).is_dir() for a in (used, left, fresh)] == [True, False, True]


def test_the_files_of_a_deleted_version_go(keep: Callable[..., StoredArtifact]) -> None:
    artifact = keep(b"x", TWO_HOURS_AGO)
    register(artifact)
    tasks.delete_unused_files()
    assert store().path_of(artifact.digest).is_dir()
    services.version_delete(model="digits", number=1, now=timezone.now(), actor="alice")
    tasks.delete_unused_files()
    assert not store().path_of(artifact.digest).exists()


def test_files_sent_again_are_fresh(keep: Callable[..., StoredArtifact]) -> None:
    artifact = keep(b"x", TWO_HOURS_AGO)
    keep(b"x")
    assert delete_unused(now=timezone.now()) == []
    assert store().path_of(artifact.digest).is_dir()


def test_what_is_no_artifact_is_left_alone(keep: Callable[..., StoredArtifact], store_folder: Path) -> None:
    keep(b"x")
    (store_folder / "notes").mkdir()
    (store_folder / "README").write_text("mine")
    assert delete_unused(now=datetime(2100, 1, 1, tzinfo=UTC)) != []
    assert sorted(path.name for path in store_folder.iterdir()) == [".incoming", "README", "notes"]


def test_a_store_that_was_never_used_is_no_fault(store_folder: Path) -> None:
    assert delete_unused(now=timezone.now()) == []
    assert not store_folder.exists()


def test_files_stay_as_long_as_the_setting_says(keep: Callable[..., StoredArtifact], settings: Settings) -> None:
    settings.RETAIN_UNUSED_ARTIFACTS = timedelta(hours=3)
    artifact = keep(b"left", TWO_HOURS_AGO)
    assert delete_unused(now=timezone.now()) == []
    later = timezone.now() + timedelta(hours=2)
    assert [each.digest for each in delete_unused(now=later)] == [artifact.digest]
