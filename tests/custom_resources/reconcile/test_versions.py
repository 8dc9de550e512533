"""ModelVersion objects imported to the end, by the worker's tasks: from a file of this machine to a READY version."""

from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from clusters.models import Cluster
from common.uris import parse_prefixes
from control_plane.celery import app
from custom_resources.models import ResourceObject
from custom_resources.reconcile.versions import version_follow
from jobs.services import run_claim
from registry import tasks
from registry.models import Alias, ModelImport, ModelVersion
from tests.custom_resources._support.object_store import ObjectStore

pytestmark = pytest.mark.django_db(transaction=True)
Look = Callable[[], dict[str, object]]


@pytest.fixture
def model_file(settings: Settings, store_folder: Path, tmp_path: Path, linear_model: Callable[..., bytes]) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    settings.IMPORT_FROM = parse_prefixes([folder.as_uri()])
    place = folder / "digits.onnx"
    place.write_bytes(linear_model())
    return place


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectStore]:
    """Give objects in memory, while hints of tasks run the tasks at once."""
    monkeypatch.setattr(run_claim, "RENEW_EVERY_S", 60.0)
    monkeypatch.setattr(tasks, "_RENEW_EVERY_S", 60.0)
    app.conf.task_always_eager = True
    yield ObjectStore()
    app.conf.task_always_eager = False


@pytest.fixture
def look(objects: ObjectStore) -> Look:
    """Give a look of the controller at the object, which returns its status then."""
    # Of this machine, for that is where the worker then checks the version.
    cluster, _ = Cluster.objects.get_or_create(name="local", defaults={"kind": "local", "created_at": timezone.now()})

    def look() -> dict[str, object]:
        ResourceObject.objects.exclude(retry_at=None).update(retry_at=timezone.now())
        tasks.sweep_imports()  # as the worker does every few seconds
        version_follow(cluster, objects, "default", "digits-1", clock=timezone.now)  # type: ignore[arg-type]
        return dict(objects.items["ModelVersion", "default", "digits-1"].get("status", {}))

    return look


def test_an_object_becomes_a_version_with_its_files(model_file: Path, objects: ObjectStore, look: Look) -> None:
    digest = sha256(model_file.read_bytes()).hexdigest()
    said = {"model": "digits", "uri": model_file.as_uri(), "sha256": digest, "tags": {"by": "git"}}
    objects.put("ModelVersion", "digits-1", {**said, "aliases": ["champion"]})
    look()
    status = look()
    version = ModelVersion.objects.get()
    assert version.status == "READY", version.reason
    assert (status["phase"], status["uri"]) == ("Ready", "models:/digits/1")
    assert status["digest"] == version.digest
    assert version.created_by == "kubernetes:local/default/digits-1"
    assert version.tags == {"by": "git"}
    kept = [path for path in Path(version.artifact_uri.removeprefix("file://")).rglob("*") if path.is_file()]
    assert [path.read_bytes() for path in kept] == [model_file.read_bytes()]
    assert Alias.objects.get(name="champion").version == version
    assert look() == status
    assert (ModelImport.objects.count(), ModelVersion.objects.count()) == (1, 1)


def test_files_with_another_digest_end_as_a_failed_import(model_file: Path, objects: ObjectStore, look: Look) -> None:
    objects.put("ModelVersion", "digits-1", {"model": "digits", "uri": model_file.as_uri(), "sha256": "0" * 64})
    look()
    status = look()
    assert status["phase"] == "ImportFailed"
    assert not ModelVersion.objects.exists()
