"""Programs of services on the local cluster: their records, versions and rollouts, and what is refused."""

from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from common.errors import InvalidInput
from deployments.models import InferenceService, Revision
from deployments.services import service_apply, service_plan
from registry.models import ModelVersion
from tests.deployments._support.platform import Platform

COMMAND = ["python3", "serve.py"]


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    """Give the folder that holds the programs' folders."""
    made = tmp_path / "programs"
    made.mkdir()
    settings.PROGRAM_FOLDERS = (made,)
    return made


@pytest.fixture
def ready(platform: Platform) -> Platform:
    platform.policy(name="quick", steps=[{"weight": 50}], scaleDownDelay="30s")
    return platform


def release(folder: Path, name: str, content: str = "print()") -> str:
    (folder / name).mkdir(exist_ok=True)
    (folder / name / "serve.py").write_text(content)
    return str(folder / name)


def document(platform: Platform, working_dir: str, **container: Any) -> dict[str, Any]:
    made = platform.document(policy="quick")
    del made["spec"]["predictor"]["model"]
    made["spec"]["predictor"]["containers"] = [{"workingDir": working_dir, "command": COMMAND, **container}]
    return made


def put(platform: Platform, made: dict[str, Any]) -> None:
    platform.clock.go_on(1.0)
    service_apply(document=made, namespace=None, name=None, actor="alice", now=platform.clock())


def stored() -> dict[str, Any]:
    found: dict[str, Any] = InferenceService.objects.get().document["spec"]["predictor"]["containers"][0]
    return found


def test_each_release_is_a_version_and_a_rollout_leads_to_it_and_back(ready: Platform, folder: Path) -> None:
    put(ready, document(ready, release(folder, "sentiment-1")))
    ready.until(lambda: ready.view().phase == "Ready")
    put(ready, document(ready, release(folder, "sentiment-2", "print(2)")))
    ready.until(lambda: ready.rollout().phase == "Healthy")
    names = [each.source_name for each in ModelVersion.objects.order_by("number")]
    assert names == ["sentiment-1", "sentiment-2"]
    version = ModelVersion.objects.get(number=2)
    record = stored()["image"]
    assert record == f"sentiment-2@{version.digest}"
    assert (version.description, version.has_files) == (f"Program {record}", False)
    desired = ready.cluster.desired["default", "digits"]
    custom = next(each.custom for each in desired.revisions if each.name == "digits-00002")
    assert custom is not None
    assert (custom.image, custom.working_dir, custom.command) == (record, str(folder / "sentiment-2"), tuple(COMMAND))

    put(ready, document(ready, str(folder / "sentiment-2")))
    assert Revision.objects.count() == 2, "the same again changes nothing"
    ready.back()
    ready.until(lambda: ready.rollout().phase == "Healthy")
    assert stored()["workingDir"] == str(folder / "sentiment-1")
    assert ModelVersion.objects.count() == 2


def test_other_content_in_the_same_folder_is_another_revision(ready: Platform, folder: Path) -> None:
    made = document(ready, release(folder, "sentiment-1"))
    put(ready, made)
    ready.until(lambda: ready.view().phase == "Ready")
    before = InferenceService.objects.get().document
    release(folder, "sentiment-1", "print(2)")
    put(ready, made)
    assert [str(each.model_version) for each in Revision.objects.order_by("number")] == [
        "default.digits version 1",
        "default.digits version 2",
    ]
    with pytest.raises(InvalidInput, match="record of another program or of other content") as refused:
        put(ready, before)
    assert refused.value.field == "spec.predictor.containers[0].image"


def test_a_model_with_a_transformer_has_it_in_each_replica(ready: Platform, folder: Path) -> None:
    ready.version(1)
    ready.version(2)
    made = ready.document("models:/digits/1", policy="quick", minReplicas=2)
    its = {"workingDir": release(folder, "tokenizer-1"), "command": COMMAND, "env": [{"name": "LOWER", "value": "1"}]}
    made["spec"]["transformer"] = {"containers": [its]}
    put(ready, made)
    ready.until(lambda: ready.view().phase == "Ready")
    ready.start("2")
    ready.until(lambda: ready.rollout().phase == "Healthy")
    for revision in ready.cluster.desired["default", "digits"].revisions:
        assert revision.transformer is not None
        assert revision.transformer.image.startswith("tokenizer-1@sha256:")
        assert revision.transformer.env == {"LOWER": "1"}


def test_a_plan_reads_the_folder_and_writes_nothing(ready: Platform, folder: Path) -> None:
    made = document(ready, release(folder, "sentiment-1"))
    planned = service_plan(document=made, namespace="default", name="digits", actor="alice", now=ready.clock())
    after = planned.plan.after
    assert isinstance(after, dict)
    assert after["spec"]["predictor"]["containers"][0]["image"].startswith("sentiment-1@sha256:")
    assert not ModelVersion.objects.exists()
    assert "image" not in made["spec"]["predictor"]["containers"][0], "the caller's file stays as it is"


def test_a_program_elsewhere_is_refused(ready: Platform, folder: Path, settings: Settings) -> None:
    elsewhere = release(folder.parent, "sentiment-1")
    with pytest.raises(InvalidInput, match="runs the programs of folders directly in") as refused:
        put(ready, document(ready, elsewhere))
    assert refused.value.field == "spec.predictor.containers[0].workingDir"
    settings.PROGRAM_FOLDERS = ()
    with pytest.raises(InvalidInput, match="this installation runs no programs; have its operator name the folder"):
        put(ready, document(ready, release(folder, "sentiment-1")))
    assert not InferenceService.objects.exists()


def test_a_secret_of_a_transformer_has_to_be_there(ready: Platform, folder: Path) -> None:
    ready.version(1)
    made = ready.document("models:/digits/1", policy="quick")
    reference = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    its = {"workingDir": release(folder, "tokenizer-1"), "command": COMMAND, "env": [reference]}
    made["spec"]["transformer"] = {"containers": [its]}
    with pytest.raises(InvalidInput) as refused:
        put(ready, made)
    assert refused.value.field == "spec.transformer.containers[0].env"
