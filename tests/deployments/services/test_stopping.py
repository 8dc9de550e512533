from functools import partial
from typing import Any

import pytest

from accounts.models import AuditEntry
from common.errors import Conflict
from deployments.models import InferenceService
from deployments.services import rollout_start, service_apply, service_restart, service_resume, service_stop
from tests.deployments.conftest import Platform


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
