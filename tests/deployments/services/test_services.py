from typing import Any

import pytest

from accounts.models import AuditEntry
from common.errors import Conflict, ContractBroken, InvalidInput, NotFound
from deployments.models import InferenceService, Revision, Rollout
from deployments.services import rollout_abort, service_apply, service_delete
from deployments.views.shapes import FileView
from events.models import Event
from registry.domain.version_lifecycle import Status
from registry.services import version_delete
from tests.deployments._support.platform import Platform

OTHER = {
    "inputs": [{"name": "image", "datatype": "FP32", "shape": [-1, 784]}],
    "outputs": [{"name": "label", "datatype": "INT64", "shape": [-1]}],
}


def test_a_new_service_gets_its_first_revision(platform: Platform) -> None:
    platform.version(1)
    service = platform.apply(policy=None)
    revision = Revision.objects.get()
    assert (revision.name, revision.role, revision.model_version.number) == ("digits-00001", "stable", 1)
    assert (service.phase, service.cluster.name) == ("Pending", "local")
    assert platform.events() == ["ServiceCreated", "RevisionCreated"]
    assert AuditEntry.objects.get(action="service.apply").target == "services/default/digits"


def test_the_same_file_again_changes_nothing(platform: Platform) -> None:
    service = platform.live()
    before = service.changes
    _, created = service_apply(
        document=platform.document(), namespace="default", name="digits", actor="alice", now=platform.clock()
    )
    service.refresh_from_db()
    assert (created, service.changes, Rollout.objects.count()) == (False, before, 0)


def test_a_file_without_a_name_serves_under_the_one_it_was_put_under(platform: Platform) -> None:
    platform.version(1)
    nameless = platform.document(policy=None)
    del nameless["metadata"]
    put = {"document": nameless, "namespace": "vision", "name": "digits", "actor": "alice"}
    service_apply(**put, now=platform.clock())
    platform.turn()
    service, created = service_apply(**put, now=platform.clock())
    assert (str(service), created, service.revisions.count()) == ("vision/digits", False, 1)
    assert list(platform.cluster.desired) == [("vision", "digits")]


def test_a_changed_file_of_a_live_service_starts_a_rollout_by_its_policy(platform: Platform) -> None:
    platform.live()
    platform.apply(replicas=2)
    rollout = platform.rollout()
    assert (rollout.policy_name, rollout.from_revision.name, rollout.to_revision.name) == (
        "careful",
        "digits-00001",
        "digits-00002",
    )
    assert (rollout.to_revision.min_replicas, rollout.to_revision.role, rollout.phase) == (2, "canary", "Pending")


def test_another_timeout_is_taken_up_at_once_and_makes_no_revision(platform: Platform) -> None:
    service = platform.live()
    platform.apply(timeout=30)
    platform.turn()
    assert (service.revisions.count(), Rollout.objects.count()) == (1, 0)
    assert platform.cluster.desired["default", "digits"].request_timeout_s == 30


def test_a_changed_file_of_a_service_that_never_served_replaces_its_revision(platform: Platform) -> None:
    platform.version(1)
    platform.version(2)
    platform.apply(policy=None)
    platform.apply(uri="models:/digits/2", policy=None)
    assert list(Revision.objects.order_by("number").values_list("name", "role")) == [
        ("digits-00001", "retired"),
        ("digits-00002", "stable"),
    ]
    assert Rollout.objects.count() == 0


def test_a_file_that_only_names_another_policy_starts_nothing(platform: Platform) -> None:
    platform.live()
    platform.policy(name="bold")
    service = platform.apply(policy="bold")
    assert (service.policy.name if service.policy else None, Rollout.objects.count()) == ("bold", 0)


def test_a_file_that_says_what_is_live_gives_up_the_rollout_to_something_else(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.apply(uri="models:/digits/2")
    platform.apply(uri="models:/digits/1")
    assert (platform.rollout().phase, platform.rollout().reason_code) == ("Aborted", "Superseded")
    assert Revision.objects.count() == 2


def test_after_a_started_rollout_an_older_file_means_going_back(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start("2")
    platform.apply(uri="models:/digits/1")
    assert platform.rollout().reason_code == "Superseded"


def test_the_file_of_a_version_that_was_rolled_back_is_not_tried_again(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.apply(uri="models:/digits/2")
    Rollout.objects.update(phase="Degraded", finished_at=platform.clock())
    platform.apply(uri="models:/digits/2")
    assert Rollout.objects.count() == 1


@pytest.mark.parametrize(
    ("file", "error", "sentence"),
    [
        pytest.param({"uri": "models:/digits/9"}, NotFound, "model 'digits' has no version 9", id="unknown version"),
        pytest.param({"uri": "models:/digits@best"}, NotFound, "has no alias 'best'", id="unknown alias"),
        pytest.param({"uri": "models:/letters/1"}, NotFound, "there is no model 'letters'", id="unknown model"),
        pytest.param(
            {"policy": "bold"}, NotFound, "spec.rollout.policy names the policy 'bold', which is not there", id="policy"
        ),
        pytest.param({"uri": "models:/digits/2"}, Conflict, "digits version 2 is PENDING, not READY", id="not checked"),
        pytest.param(
            {"uri": "models:/digits/3"},
            Conflict,
            "digits version 3 is REJECTED, not READY (opset 99 is unknown); register a better one",
            id="rejected",
        ),
        pytest.param(
            {"uri": "models:/digits/4"},
            ContractBroken,
            "digits version 4 would break clients of digits version 1, which is live: "
            "input 'image' takes [-1,784], clients send [-1,64]",
            id="another signature",
        ),
    ],
)
def test_what_cannot_be_served_is_refused_and_nothing_half_done_stays(
    platform: Platform, file: dict[str, Any], error: type[Exception], sentence: str
) -> None:
    service = platform.live()
    platform.version(2, status=Status.PENDING)
    platform.version(3, status=Status.REJECTED, reason="opset 99 is unknown")
    platform.version(4, signature=OTHER)
    events = Event.objects.count()
    with pytest.raises(error) as caught:
        platform.apply(**file)
    assert sentence in str(caught.value)
    after = InferenceService.objects.get()
    assert (after.document, after.changes) == (service.document, service.changes)
    assert (Revision.objects.count(), Rollout.objects.count(), Event.objects.count()) == (1, 0, events)


def test_a_refused_first_file_leaves_no_service(platform: Platform) -> None:
    platform.version(1, status=Status.PENDING)
    with pytest.raises(Conflict, match="wait for its check to end"):
        platform.apply(policy=None)
    assert not InferenceService.objects.exists()


def test_a_service_that_is_being_deleted_is_not_changed(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    rollout = platform.start()
    service_delete(namespace="default", name="digits", actor="alice", now=platform.clock())
    rollout.refresh_from_db()
    assert rollout.reason_code == "Superseded"
    with pytest.raises(Conflict, match="is being deleted; apply its file again once it is gone"):
        platform.apply(uri="models:/digits/2")
    with pytest.raises(Conflict, match="is being deleted"):
        platform.start()
    changes = InferenceService.objects.get().changes
    service_delete(namespace="default", name="digits", actor="alice", now=platform.clock())
    assert InferenceService.objects.get().changes == changes, "deleting twice is deleting once"


def test_an_unknown_service_cannot_be_deleted(platform: Platform) -> None:
    with pytest.raises(NotFound, match="there is no service default/digits"):
        service_delete(namespace="default", name="digits", actor="alice", now=platform.clock())


def test_the_registry_does_not_delete_a_version_that_a_service_has(platform: Platform) -> None:
    platform.live()
    with pytest.raises(Conflict, match=r"service default/digits \(revision digits-00001, stable\)"):
        version_delete(model="digits", number=1, actor="alice", now=platform.clock())


def test_a_bad_file_is_refused_before_anything_is_asked(platform: Platform) -> None:
    with pytest.raises(InvalidInput, match="the service file is a list"):
        service_apply(document=[], namespace="default", name="digits", actor="alice", now=platform.clock())


def test_whether_what_the_file_says_is_live_is_told_with_the_reason(platform: Platform) -> None:
    platform.version(1)
    platform.version(2)
    platform.policy()
    platform.apply()
    assert platform.view().file == FileView(False, "nothing of default/digits is live yet")
    platform.until(lambda: platform.view().phase == "Ready")
    assert platform.view().file == FileView(True, "")
    platform.metrics.serve("digits-00001", 1000, slow=20)

    platform.apply(uri="models:/digits/2")
    rollout = platform.rollout()
    live = "digits-00001 (digits version 1) is live, not what the file says"
    assert platform.view().file.message.startswith(f"{live}: rollout {rollout.pk} to digits-00002 is Pending: ")
    rollout_abort(rollout_id=rollout.pk, actor="bob", now=platform.clock())
    told = platform.view().file
    assert (told.is_live, told.message.startswith(f"{live}: rollout {rollout.pk} to digits-00002 ended Aborted: ")) == (
        False,
        True,
    )
    platform.apply(uri="models:/digits/2")
    assert platform.view().file == told, "the same file again changes nothing, and says so"


def test_after_a_rollback_the_file_says_what_is_live(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    assert platform.view().file.is_live
    platform.back()
    platform.until(lambda: platform.view().model_version == 1)
    assert platform.view().file.is_live


def test_a_stored_file_that_this_release_does_not_take_is_told_about(platform: Platform) -> None:
    platform.live()
    InferenceService.objects.update(document={"kind": "Nothing"})
    told = platform.view().file
    assert (told.is_live, "which this release does not take" in told.message) == (False, True)
