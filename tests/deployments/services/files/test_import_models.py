"""Services whose file names files elsewhere: a folder of this machine, and the worker's own task brings them in."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import AuditEntry, Ownership
from accounts.services import teams
from common.errors import InvalidInput
from common.uris import parse_prefixes
from deployments.models import InferenceService, Revision, Rollout
from deployments.selectors import service_detail
from deployments.services import service_apply, service_delete, service_plan
from registry import tasks
from registry.models import ModelImport, ModelVersion, RegisteredModel
from registry.services.imports import imports_forget
from tests.deployments._support.platform import SIGNATURE, Platform

Api = Callable[..., APIClient]


@pytest.fixture
def root(settings: Settings, tmp_path: Path) -> Path:
    settings.ARTIFACTS_FOLDER = tmp_path / "artifacts"
    settings.IMPORT_FROM = parse_prefixes([(tmp_path / "models").as_uri()])
    for name in ("one", "two"):
        (tmp_path / "models" / name).mkdir(parents=True)
        (tmp_path / "models" / name / "model.onnx").write_bytes(name.encode())
    return tmp_path / "models"


def come_in(*, checked_as: str = "READY") -> None:
    """Let the worker fetch what is waited for, and the runtime say what it thinks of it."""
    tasks.import_model(ModelImport.objects.order_by("-pk").values_list("pk", flat=True)[0])
    ModelVersion.objects.filter(status="PENDING").update(status=checked_as, signature=SIGNATURE, reason="for the test")


def the_service() -> InferenceService:
    return InferenceService.objects.get()


def test_a_new_service_waits_for_its_model_and_then_serves_it(platform: Platform, root: Path) -> None:
    uri = (root / "one").as_uri()
    platform.apply(uri=uri, policy=None)
    platform.turn()
    view = service_detail(namespace="default", name="digits", now=timezone.now())
    assert (view.phase, view.reason, view.model_version) == ("Pending", "waiting for import: 0.0 MB", None)
    assert view.import_state is not None
    assert (view.import_state.uri, view.import_state.ended_badly) == (uri, False)
    assert not platform.cluster.desired  # nothing to run yet

    ModelImport.objects.update(bytes_done=40_000_000, bytes_total=120_000_000)
    platform.turn()
    assert the_service().reason == "waiting for import: 40 of 120 MB"

    come_in()
    ModelVersion.objects.update(status="PENDING")
    platform.turn()
    assert the_service().reason == "waiting for the check of default.digits version 1, which was imported"

    ModelVersion.objects.update(status="READY")
    platform.until(lambda: the_service().phase == "Ready")
    view = service_detail(namespace="default", name="digits", now=timezone.now())
    assert (view.model, view.model_version, view.import_state) == ("default.digits", 1, None)
    assert ModelVersion.objects.get().lineage["source_uri"] == uri
    assert platform.events()[:3] == ["ServiceCreated", "ImportStarted", "ModelImported"]
    entry = AuditEntry.objects.get(action="service.follow_import")
    assert (entry.target, entry.after) == ("services/default/digits", {"version": "models:/default.digits/1"})


def test_a_live_service_goes_on_while_the_next_comes_in_and_then_rolls_out(platform: Platform, root: Path) -> None:
    platform.live()
    platform.apply(uri=(root / "one").as_uri())
    platform.turn()
    view = service_detail(namespace="default", name="digits", now=timezone.now())
    assert (view.phase, view.model_version, view.rollout) == ("Ready", 1, None)
    assert view.reason.endswith("; waiting for import: 0.0 MB")
    come_in()
    platform.turn()
    rollout = platform.rollout()
    assert (rollout.policy_name, rollout.to_revision.model_version.uri) == ("careful", "models:/default.digits/1")
    assert the_service().import_note == ""


def test_the_same_file_again_changes_nothing_neither_while_it_waits_nor_after(platform: Platform, root: Path) -> None:
    uri = (root / "one").as_uri()
    service = platform.apply(uri=uri, policy=None)
    before = service.changes
    platform.apply(uri=uri, policy=None)
    assert (the_service().changes, ModelImport.objects.count()) == (before, 1)
    come_in()
    platform.until(lambda: the_service().phase == "Ready")
    (root / "one" / "model.onnx").write_bytes(b"newer")
    platform.apply(uri=uri, policy=None)
    assert (ModelImport.objects.count(), Revision.objects.count(), Rollout.objects.count()) == (1, 1, 0)
    plan = service_plan(
        document=platform.document(uri=uri, policy=None),
        namespace="default",
        name="digits",
        actor="alice",
        now=platform.clock(),
    ).plan
    assert plan.outcome == "unchanged"


def test_another_field_changes_without_another_import(platform: Platform, root: Path) -> None:
    uri = (root / "one").as_uri()
    platform.apply(uri=uri, policy=None)
    platform.apply(uri=uri, policy=None, replicas=2)  # while it waits
    come_in()
    platform.until(lambda: the_service().phase == "Ready")
    assert Revision.objects.get().min_replicas == 2
    platform.apply(uri=uri, policy=None, replicas=3)
    assert (ModelImport.objects.count(), platform.rollout().to_revision.min_replicas) == (1, 3)


def test_the_same_files_elsewhere_are_no_new_version_and_no_rollout(platform: Platform, root: Path) -> None:
    platform.apply(uri=(root / "one").as_uri(), policy=None)
    come_in()
    platform.until(lambda: the_service().phase == "Ready")
    (root / "two" / "model.onnx").write_bytes(b"one")
    platform.apply(uri=(root / "two").as_uri(), policy=None)
    come_in()
    platform.turn()
    assert (ModelVersion.objects.count(), Rollout.objects.count()) == (1, 0)
    assert (the_service().awaited_import, the_service().phase) == (None, "Ready")


def test_an_import_that_fails_is_told_on_the_service_and_begins_anew_with_the_same_file(
    platform: Platform, root: Path
) -> None:
    uri = (root / "three").as_uri()
    platform.apply(uri=uri, policy=None)
    come_in()
    for _ in range(3):
        platform.turn()
    view = service_detail(namespace="default", name="digits", now=timezone.now())
    assert view.phase == "Pending"
    assert f"{uri} was not imported: there is nothing at {uri}" in view.reason
    assert view.import_state is not None
    assert view.import_state.ended_badly
    assert platform.events().count("ImportRefused") == 1

    (root / "two").rename(root / "three")
    platform.apply(uri=uri, policy=None)
    come_in()
    platform.until(lambda: the_service().phase == "Ready")
    assert ModelImport.objects.count() == 2


def test_a_version_that_is_rejected_is_told_and_what_is_live_goes_on(platform: Platform, root: Path) -> None:
    platform.live()
    platform.apply(uri=(root / "one").as_uri())
    come_in(checked_as="REJECTED")
    platform.turn()
    view = service_detail(namespace="default", name="digits", now=timezone.now())
    assert (view.phase, view.model_version) == ("Ready", 1)
    assert "default.digits version 1, which was imported, is REJECTED: for the test" in view.reason


def test_a_version_that_clients_could_not_use_is_told(platform: Platform, root: Path) -> None:
    platform.live()
    platform.apply(uri=(root / "one").as_uri())
    come_in()
    ModelVersion.objects.filter(model__name="default.digits").update(signature={"inputs": [], "outputs": []})
    platform.turn()
    assert (
        "would break clients of digits version 1, which is live: input 'image' is not taken any more"
        in the_service().import_note
    )
    assert not Rollout.objects.exists()
    assert platform.events().count("ImportRefused") == 1


def test_a_newer_wish_ends_the_waiting(platform: Platform, root: Path) -> None:
    platform.live()
    platform.apply(uri=(root / "one").as_uri())
    platform.apply()
    come_in()
    platform.turn()
    assert (the_service().awaited_import, the_service().import_note, Rollout.objects.count()) == (None, "", 0)


def test_a_rollout_that_somebody_starts_ends_the_waiting(platform: Platform, root: Path) -> None:
    platform.live()
    platform.version(2)
    platform.apply(uri=(root / "one").as_uri())
    platform.start("2")
    come_in()
    platform.turn()
    assert the_service().awaited_import is None
    assert platform.rollout().to_revision.model_version.uri == "models:/digits/2"


def test_a_service_that_waits_can_be_deleted(platform: Platform, root: Path) -> None:
    platform.apply(uri=(root / "one").as_uri(), policy=None)
    service_delete(namespace="default", name="digits", actor="alice", now=platform.clock())
    platform.turn()
    assert not InferenceService.objects.exists()
    come_in()  # ends as a version that nobody serves
    assert RegisteredModel.objects.get().name == "default.digits"


@pytest.mark.parametrize(
    ("uri", "told"),
    [
        (
            "s3://other/digits/",
            r"spec\.predictor\.model\.storageUri is 's3://other/digits/', which FAIRLEAD_IMPORT_FROM",
        ),
        ("file:///etc", "FAIRLEAD_IMPORT_FROM does not allow"),
        ("https://h/m.onnx?signature=x", "has a query"),
        ("hdfs://h/m.onnx", r"storageUri is 'hdfs://h/m\.onnx'; expected one of http://"),
    ],
)
def test_what_may_not_be_imported_makes_no_service(platform: Platform, root: Path, uri: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told) as refusal:
        platform.apply(uri=uri, policy=None)
    assert refusal.value.field == "spec.predictor.model.storageUri"
    assert not InferenceService.objects.exists()
    assert not ModelImport.objects.exists()


def test_a_dry_run_says_that_it_would_import_and_does_not(platform: Platform, root: Path) -> None:
    uri = (root / "one").as_uri()
    plan = service_plan(
        document=platform.document(uri=uri, policy=None),
        namespace="default",
        name="digits",
        actor="alice",
        now=platform.clock(),
    ).plan
    assert (plan.outcome, plan.message) == (
        "created",
        f"{uri} is imported as a version of model default.digits, which then is served",
    )
    assert not ModelImport.objects.exists()


def test_the_model_belongs_to_the_team_of_the_namespace(platform: Platform, root: Path, api: Api) -> None:
    now = platform.clock()
    teams.team_create(name="red", actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    api(Scope.ADMIN, "root")  # somebody must administer the installation
    client = api(Scope.WRITE, "dora")
    teams.member_set(team="default", username="dora", role=Role.VIEWER, actor="test", now=now)
    teams.member_set(team="red", username="dora", role=Role.DEPLOYER, actor="test", now=now)
    document = platform.document(uri=(root / "one").as_uri(), policy=None)
    assert client.put("/api/v1/services/default/digits", document).status_code == 201
    assert Ownership.objects.get(kind=Owned.MODEL).name == "default.digits"
    come_in()
    assert client.get("/api/v1/models/default.digits/versions/1").status_code == 200


def test_a_model_of_another_team_is_not_written_to(platform: Platform, root: Path, api: Api) -> None:
    now = platform.clock()
    for name in ("red", "blue"):
        teams.team_create(name=name, actor="test", now=now)
    teams.ownership_set(team="red", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    teams.ownership_set(team="blue", kind=Owned.MODEL, name="default.digits", actor="test", now=now)
    api(Scope.ADMIN, "root")  # somebody must administer the installation
    client = api(Scope.WRITE, "dora")
    teams.member_set(team="default", username="dora", role=Role.VIEWER, actor="test", now=now)
    teams.member_set(team="red", username="dora", role=Role.DEPLOYER, actor="test", now=now)
    document = platform.document(uri=(root / "one").as_uri(), policy=None)
    assert client.put("/api/v1/services/default/digits", document).status_code == 404
    assert not InferenceService.objects.exists()


def test_a_failed_import_that_a_service_tells_of_is_not_forgotten(platform: Platform, root: Path) -> None:
    platform.apply(uri=(root / "three").as_uri(), policy=None)
    come_in()
    assert imports_forget(now=timezone.now() + timedelta(days=91), older_than=timedelta(days=90)) == 0


def test_the_file_put_again_by_its_address_is_unchanged(platform: Platform, root: Path) -> None:
    uri = (root / "one").as_uri()
    first, created = service_apply(
        document=platform.document(uri=uri, policy=None),
        namespace="default",
        name="digits",
        actor="alice",
        now=platform.clock(),
    )
    again, created_again = service_apply(
        document=platform.document(uri=uri.replace("file:///", "file://localhost/"), policy=None),
        namespace="default",
        name="digits",
        actor="alice",
        now=platform.clock(),
    )
    assert (created, created_again, first.pk) == (True, False, again.pk)
