"""Services sleep and wake, through database and reconciler."""

from datetime import timedelta
from typing import Any

import pytest

from clusters.models import Cluster
from deployments.models import Revision
from deployments.services import service_apply
from deployments.services.dry_run import service_plan
from events.models import Event
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.pages import DETAIL, signed_in, text
from tests.deployments._support.platform import Platform

SLEEPS: dict[str, Any] = {"replicas": 0, "maxReplicas": 3}


def wanted(platform: Platform) -> dict[str, int]:
    return {each.name: each.replicas for each in platform.cluster.desired["default", "digits"].revisions}


def scaled_last() -> str:
    return Event.objects.filter(kind="RevisionScaled").values_list("message", flat=True).latest("seq")


def pass_quiet(platform: Platform) -> None:
    platform.until(lambda: platform.turn(seconds=60) is None or wanted(platform) == {"digits-00001": 0}, turns=20)


@pytest.fixture
def sleeper(platform: Platform) -> Platform:
    platform.live(**SLEEPS)
    assert wanted(platform) == {"digits-00001": 1}
    pass_quiet(platform)
    return platform


def test_a_quiet_service_sleeps_until_a_request_wakes_it(sleeper: Platform) -> None:
    desired = sleeper.cluster.desired["default", "digits"].revisions[0]
    assert desired.slept_at == sleeper.clock().timestamp()
    assert scaled_last() == "Scaled from 1 to 0: no request came for 600 s"
    sleeper.turn()
    view = sleeper.view()
    assert (view.phase, view.waits) == ("Ready", None)
    assert view.reason == "digits-00001 is asleep, since no request came: its next request wakes it"
    shown = view.revisions[0]
    assert (shown.model_state, shown.start_seconds) == ("Standby", 2.5)
    assert shown.asleep_since is not None
    assert shown.asleep_since.timestamp() == desired.slept_at
    for _ in range(5):
        sleeper.turn(seconds=600)
    assert wanted(sleeper) == {"digits-00001": 0}
    sleeper.cluster.woken["digits-00001"] = woken_at = sleeper.clock().timestamp()
    sleeper.turn()
    assert wanted(sleeper) == {"digits-00001": 1}
    assert scaled_last() == "Scaled from 0 to 1: a request woke it"
    sleeper.turn()
    assert sleeper.view().reason == "digits-00001 serves all traffic with 1 replica"
    assert Revision.objects.get().load["sleep"]["woken_at"] == woken_at
    pass_quiet(sleeper)  # and again
    assert (sleeper.cluster.desired["default", "digits"].revisions[0].slept_at or 0) > woken_at


def test_its_page_says_that_it_is_asleep_how_long_it_takes_to_wake_and_what_that_saved(sleeper: Platform) -> None:
    sleeper.turn(seconds=3 * 3600)
    [asleep] = marked(text(signed_in(), DETAIL), "sleep")
    assert asleep.startswith("digits-00001 is asleep: its next request waits about 2.5 s")
    assert sleeper.view().revisions[0].asleep_hours == pytest.approx(3, abs=0.1)
    assert "replica hours so far." in asleep, "without a price there is no cost"
    Cluster.objects.update(prices={"currency": "EUR", "per_hour": {"replica": 0.5}})
    assert "replica hours so far, which is 1.5 EUR." in marked(text(signed_in(), DETAIL), "sleep")[0]
    assert marked(text(signed_in(), DETAIL), "asleep")[0].startswith("none: asleep since")
    sleeper.cluster.woken["digits-00001"] = sleeper.clock().timestamp()
    sleeper.turn()
    [waking] = marked(text(signed_in(), DETAIL), "sleep")
    assert waking.startswith("digits-00001 is waking: requests wait about 2.5 s for its replica")
    sleeper.turn()
    [awake] = marked(text(signed_in(), DETAIL), "sleep")
    assert awake.startswith("digits-00001 sleeps when it is quiet")


@pytest.mark.django_db
def test_the_page_of_one_that_wakes_says_that_requests_wait_for_its_replica() -> None:
    scenes.sleeper(is_waking=True)
    page = text(signed_in(), DETAIL)
    assert marked(page, "waking") == ["0 of 1: waking"]
    assert "is waking: a request came, and requests wait in the gateway until its first replica is ready" in page
    assert not marked(page, "asleep")


def test_a_service_with_requests_stays_awake(platform: Platform) -> None:
    platform.live(**SLEEPS)
    for number in range(30):
        platform.metrics.serve("digits-00001", number % 2)
        platform.turn(seconds=120)
        assert wanted(platform) == {"digits-00001": 1}


def test_a_rollout_wakes_stable_and_nothing_sleeps_in_it(sleeper: Platform) -> None:
    sleeper.version(2)
    sleeper.start("2")
    sleeper.until(lambda: wanted(sleeper) == {"digits-00001": 1, "digits-00002": 1})
    for _ in range(15):
        sleeper.turn(seconds=100)
        assert all(wanted(sleeper).values())


def test_one_that_is_stopped_asleep_serves_when_it_is_resumed(sleeper: Platform) -> None:
    document = sleeper.document(**SLEEPS)
    document["metadata"]["annotations"] = {"serving.kserve.io/stop": "true"}
    service_apply(document=document, namespace=None, name=None, actor="alice", now=sleeper.clock())
    sleeper.turn()
    assert sleeper.view().phase == "Stopped"
    assert sleeper.cluster.desired["default", "digits"].revisions[0].slept_at is None
    sleeper.apply(**SLEEPS)
    sleeper.until(lambda: sleeper.view().phase == "Ready" and wanted(sleeper) == {"digits-00001": 1})


def test_one_whose_replica_cannot_start_is_degraded(sleeper: Platform) -> None:
    sleeper.cluster.broken["digits-00001"] = "no such model"
    sleeper.cluster.woken["digits-00001"] = sleeper.clock().timestamp()
    sleeper.until(lambda: sleeper.view().phase == "Degraded")
    sleeper.turn(seconds=timedelta(hours=1).total_seconds())
    assert wanted(sleeper) == {"digits-00001": 1}


def test_a_plan_shows_the_measured_start_before_zero_is_allowed(platform: Platform) -> None:
    platform.live()
    plan = service_plan(
        document=platform.document(**SLEEPS), namespace="default", name="digits", actor="alice", now=platform.clock()
    ).plan
    [warning] = [each for each in plan.warnings if "minReplicas" in each]
    assert "after 600 s without requests" in warning
    assert warning.endswith("its last replicas took up to 2.5 s to start")
    assert not Revision.objects.filter(min_replicas=0).exists()
