from functools import partial
from typing import Any

import pytest

from accounts.models import AuditEntry
from common.errors import Conflict, ContractBroken
from deployments.models import InferenceService
from deployments.services import (
    rollout_retry,
    rollout_start,
    service_apply,
    service_plan,
    service_restart,
    service_resume,
    service_stop,
)
from deployments.web.presentation import actions_of
from events.models import Event
from tests.deployments._support.platform import SIGNATURE, Platform


def who(platform: Platform) -> dict[str, Any]:
    return {"namespace": "default", "name": "digits", "actor": "bob", "now": platform.clock()}


def test_a_stopped_service_gets_no_requests_and_no_replicas_until_it_is_resumed(platform: Platform) -> None:
    platform.live(replicas=2)
    service_stop(**who(platform))
    assert platform.view().waits.condition == "Stopping"
    platform.until(lambda: platform.view().reason.endswith("resume it to serve again"))
    assert (platform.view().phase, platform.view().waits) == ("Stopped", None)
    [revision] = platform.cluster.desired["default", "digits"].revisions
    assert (revision.replicas, revision.weight_percent) == (0, 0)
    models = platform.view().model_status
    assert (models.active_model_state, models.transition_status) == ("Standby", "UpToDate")
    assert [each.replicas_wanted for each in platform.view().revisions] == [0]

    service_resume(**who(platform))
    platform.until(lambda: platform.view().phase == "Ready")
    [revision] = platform.cluster.desired["default", "digits"].revisions
    assert (revision.name, revision.replicas, revision.weight_percent) == ("digits-00001", 2, 100)
    told = platform.events()
    assert (told.count("ServiceStopped"), told.count("ServiceResumed")) == (1, 1)


def _names(platform: Platform) -> list[str]:
    return [each.name for each in platform.cluster.desired["default", "digits"].revisions]


def test_stopping_twice_changes_nothing_and_is_audited_once(platform: Platform) -> None:
    platform.live()
    service_stop(**who(platform))
    changes = InferenceService.objects.get().changes
    service_stop(**who(platform))
    assert InferenceService.objects.get().changes == changes
    entry = AuditEntry.objects.get(action="service.stop")
    assert (entry.actor, entry.before, entry.after) == ("bob", {"stopped": False}, {"stopped": True})


def test_a_stop_supersedes_the_rollout_in_progress(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    platform.until(lambda: platform.cluster.weights() == {"digits-00001": 90, "digits-00002": 10})
    service_stop(**who(platform))
    platform.until(lambda: platform.view().phase == "Stopped" and platform.view().waits is None)
    assert platform.rollout().phase == "Aborted"
    assert "the stop of the service" in platform.rollout().reason_message
    platform.until(lambda: _names(platform) == ["digits-00001"])


def test_a_version_applied_to_a_stopped_service_serves_when_it_is_resumed(platform: Platform) -> None:
    platform.live()
    service_stop(**who(platform))
    platform.until(lambda: platform.view().phase == "Stopped" and platform.view().waits is None)
    platform.version(2)
    stopped = InferenceService.objects.get().document
    stopped["spec"]["predictor"]["model"]["storageUri"] = "models:/digits/2"
    service_apply(document=stopped, **who(platform))
    platform.turn()
    assert platform.view().phase == "Stopped"
    service_resume(**who(platform))
    platform.until(lambda: platform.view().phase == "Ready")
    assert platform.cluster.weights() == {"digits-00002": 100}


def put_in_place(platform: Platform, number: int, **more: Any) -> None:
    """Have the file of a stopped service name another version."""
    document = InferenceService.objects.get().document
    document["spec"]["predictor"]["model"]["storageUri"] = f"models:/digits/{number}"
    service_apply(document=document, **who(platform), **more)
    platform.turn()


def test_the_way_back_leads_to_what_served_before_the_stop(platform: Platform) -> None:
    platform.live()
    service_stop(**who(platform))
    platform.until(lambda: platform.view().phase == "Stopped" and platform.view().waits is None)
    for number in (2, 3):
        platform.version(number)
        put_in_place(platform, number)
    replaced = Event.objects.filter(kind="RevisionStopped").order_by("seq").values_list("message", flat=True)
    assert list(replaced) == [
        "digits-00001 was replaced before it served again",
        "digits-00002 was replaced before it served",
    ]
    service_resume(**who(platform))
    platform.until(lambda: platform.view().phase == "Ready")
    assert platform.cluster.weights() == {"digits-00003": 100}
    with pytest.raises(Conflict, match=r"digits-00002 was never the stable revision"):
        platform.back("digits-00002")
    platform.back()
    platform.until(lambda: platform.cluster.weights() == {"digits-00001": 100})
    platform.until(lambda: platform.rollout().phase == "Healthy")
    platform.back()
    platform.until(lambda: platform.cluster.weights() == {"digits-00003": 100})


def test_a_stop_does_not_hide_the_way_back_of_a_rollout_before_it(platform: Platform) -> None:
    platform.live()
    platform.promoted()
    service_stop(**who(platform))
    service_resume(**who(platform))
    platform.until(lambda: platform.view().phase == "Ready")
    assert platform.back().to_revision.name == "digits-00001"


def test_the_first_revision_has_no_way_back_also_after_a_stop(platform: Platform) -> None:
    platform.live()
    service_stop(**who(platform))
    service_resume(**who(platform))
    platform.until(lambda: platform.view().phase == "Ready")
    with pytest.raises(Conflict, match="the first revision"):
        platform.back()


def test_what_would_break_clients_that_are_to_come_back_is_refused(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.version(3, signature={**SIGNATURE, "outputs": []})
    service_stop(**who(platform))
    platform.until(lambda: platform.view().phase == "Stopped" and platform.view().waits is None)
    put_in_place(platform, 2)
    with pytest.raises(ContractBroken, match=r"which was live before the service was stopped: output 'label'"):
        put_in_place(platform, 3)
    put_in_place(platform, 3, accept="they have moved to another service")
    [*_, last] = Event.objects.filter(kind="RevisionStopped").order_by("seq")
    assert "bob accepted that output 'label' is not given any more" in last.message


def test_a_rollout_is_not_retried_while_the_service_is_stopped(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    assert [action.verb for action in actions_of(platform.view())] == ["abort"]
    service_stop(**who(platform))
    platform.until(lambda: platform.view().phase == "Stopped" and platform.view().waits is None)
    assert actions_of(platform.view()) == ()
    again = {"rollout_id": platform.rollout().pk, "actor": "bob", "now": platform.clock()}
    with pytest.raises(Conflict, match=r"is stopped, so nothing can be rolled out; resume it first"):
        rollout_retry(**again)
    service_resume(**who(platform))
    platform.until(lambda: platform.view().phase == "Ready")
    assert [action.verb for action in actions_of(platform.view())] == ["retry"]
    assert rollout_retry(**again).attempt == 2


def test_a_dry_run_says_that_a_file_resumes_the_service_or_stops_it(platform: Platform) -> None:
    platform.live()
    running = InferenceService.objects.get().document
    service_stop(**who(platform))
    stopped = InferenceService.objects.get().document
    assert service_plan(document=stopped, **who(platform)).plan.message == "service default/digits is as its file says"
    assert service_plan(document=running, **who(platform)).plan.message == "the service, which is stopped, serves again"
    service_resume(**who(platform))
    assert service_plan(document=stopped, **who(platform)).plan.message == "the service is stopped"


def test_the_file_alone_stops_and_resumes(platform: Platform) -> None:
    platform.live()
    document = InferenceService.objects.get().document
    stopping = {**document, "metadata": {**document["metadata"], "annotations": {"serving.kserve.io/stop": "true"}}}
    service_apply(document=stopping, **who(platform))
    platform.until(lambda: platform.view().phase == "Stopped" and platform.view().waits is None)
    service_apply(document=document, **who(platform))
    platform.until(lambda: platform.view().phase == "Ready")


@pytest.mark.parametrize("ask", ["restart", "roll out"])
def test_what_needs_replicas_is_refused_while_it_is_stopped(platform: Platform, ask: str) -> None:
    platform.live()
    platform.version(2)
    platform.policy()
    service_stop(**who(platform))
    refused = service_restart if ask == "restart" else partial(rollout_start, version="2", policy="careful")
    with pytest.raises(Conflict, match=r"is stopped, so .*resume it"):
        refused(**who(platform))
