"""A blue/green rollout by turns of the reconciler, with the fake cluster."""

import pytest

from common.errors import InvalidInput
from deployments.models import Revision
from deployments.services import rollout_abort, service_apply
from tests.deployments._support.platform import Platform

STEP = {"hold": "4s", "analysis": {"minRequests": 50}}


def _begin(platform: Platform, **changed: object) -> None:
    platform.live(replicas=2)
    platform.version(2)
    platform.policy(name="switch", strategy="blueGreen", steps=[STEP], **changed)
    platform.start("2", "switch")


def _preview(platform: Platform) -> str:
    return platform.cluster.desired["default", "digits"].preview


def test_the_preview_is_passed_and_all_traffic_moves_in_one_switch(platform: Platform) -> None:
    _begin(platform)
    assert platform.view().preview_url == "http://127.0.0.1:8090/serving/default/digits-preview/v2/models/digits"
    platform.until(lambda: platform.rollout().reason_code == "NoTraffic")
    assert (_preview(platform), platform.cluster.weights()) == (
        "digits-00002",
        {"digits-00001": 100, "digits-00002": 0},
    )
    assert {each.replicas for each in platform.cluster.desired["default", "digits"].revisions} == {2}, "full capacity"

    platform.metrics.serve("digits-00001", 500, slow=10)
    platform.metrics.serve("digits-00002", 60)
    platform.until(lambda: platform.rollout().phase == "Healthy")

    seen = [tuple(each.weight_percent for each in desired.revisions) for desired in platform.cluster.applied]
    assert {each for each in seen if len(each) > 1} == {(100, 0), (0, 100)}, "nothing between none and all"
    platform.turn()
    assert (_preview(platform), platform.view().preview_url) == ("", None)
    assert Revision.objects.get(number=1).role == "retiring", "kept warm"
    run = platform.view().rollout
    assert run is not None
    assert (run.analysis_runs[0].requests.canary, run.strategy) == (60, "blueGreen")


def test_a_bad_preview_never_reaches_clients(platform: Platform) -> None:
    _begin(platform)
    platform.until(lambda: platform.rollout().reason_code == "NoTraffic")
    platform.bad_time(failed=4)
    assert platform.rollout().phase == "Degraded"
    assert all(
        desired.revisions[0].weight_percent == 100 for desired in platform.cluster.applied if len(desired.revisions) > 1
    )
    assert _preview(platform) == ""


def test_an_abort_closes_the_preview(platform: Platform) -> None:
    _begin(platform)
    platform.until(lambda: platform.rollout().reason_code == "NoTraffic")
    rollout_abort(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    platform.turn()
    assert (_preview(platform), platform.view().preview_url) == ("", None)


def test_the_step_does_not_begin_before_the_gateway_sends_the_preview(platform: Platform) -> None:
    _begin(platform)
    platform.cluster.broken["digits-00002"] = "loading"
    platform.turn()
    assert platform.cluster.observed["default", "digits"].preview == ""
    assert platform.rollout().phase == "Pending"


def test_within_the_delay_the_way_back_starts_no_process(platform: Platform) -> None:
    _begin(platform, scaleDownDelay="1h")
    platform.until(lambda: platform.rollout().reason_code == "NoTraffic")
    platform.metrics.serve("digits-00001", 500, slow=10)
    platform.metrics.serve("digits-00002", 60)
    platform.until(lambda: platform.rollout().phase == "Healthy")
    platform.turn(seconds=600)
    platform.turn()
    platform.back()
    platform.turn(settle=False)
    assert platform.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}


def test_the_names_of_previews_are_not_for_services(platform: Platform) -> None:
    platform.version(1)
    platform.policy()
    document = platform.document()
    document["metadata"]["name"] = "digits-preview"
    with pytest.raises(InvalidInput, match="names that end in -preview are for the preview addresses") as caught:
        service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    assert caught.value.field == "metadata.name"
