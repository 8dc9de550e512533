"""Replicas follow the load, through database and reconciler."""

from dataclasses import replace
from datetime import timedelta

import pytest

from clusters.models import Cluster
from deployments.models import InferenceService, Revision
from deployments.reconcile import reconciler
from deployments.reconcile.reconciler import Outcome
from deployments.services import rollout_abort, rollout_promote, service_apply
from events.models import Event
from integrations.clusters.base import CompanionKind, ObservedScaling
from tests.deployments._support.platform import Platform

SCALED = {"maxReplicas": 8, "scaleMetric": "concurrency", "scaleTarget": 10}


def wanted(platform: Platform) -> dict[str, int]:
    """Return how many replicas the cluster was last asked for."""
    return {each.name: each.replicas for each in platform.cluster.desired["default", "digits"].revisions}


def scaled(platform: Platform) -> list[str]:
    return list(Event.objects.filter(kind="RevisionScaled").order_by("seq").values_list("message", flat=True))


def pass_window(platform: Platform) -> None:
    """Let the whole window for scaling down pass, turn by turn."""
    for _ in range(32):
        platform.turn(seconds=10)


@pytest.fixture
def busy(platform: Platform) -> Platform:
    """A service of three replicas, each with ten requests in flight."""
    platform.live(**SCALED)
    platform.metrics.in_flight["digits-00001"] = 30
    platform.until(lambda: wanted(platform) == {"digits-00001": 3})
    platform.turn()
    platform.turn()
    return platform


def test_up_at_once_and_down_after_the_window_with_the_reason(busy: Platform) -> None:
    assert wanted(busy) == {"digits-00001": 3}
    busy.metrics.in_flight["digits-00001"] = 3
    busy.turn(seconds=100)
    assert wanted(busy) == {"digits-00001": 3}
    pass_window(busy)
    assert wanted(busy) == {"digits-00001": 1}
    up, down = scaled(busy)[0], scaled(busy)[-1]
    assert up.startswith("Scaled from 1 to ")
    assert up.endswith(" requests in flight per replica, target 10")
    assert down == "Scaled from 3 to 1: 1 requests in flight per replica, target 10"
    assert busy.view().phase == "Ready"


def test_the_number_is_recorded_before_the_cluster_hears_of_it(platform: Platform) -> None:
    platform.live(**SCALED)
    platform.metrics.in_flight["digits-00001"] = 42
    recorded: list[int] = []
    platform.cluster.on_apply = lambda _: recorded.append(Revision.objects.get().replicas)
    platform.turn(seconds=11)
    assert (recorded, wanted(platform)) == ([5], {"digits-00001": 5})
    assert scaled(platform) == ["Scaled from 1 to 5: 42 requests in flight per replica, target 10"]
    shown = platform.view().revisions[0]
    assert (shown.replicas_wanted, shown.replicas_least, shown.replicas_most) == (5, 1, 8)
    assert shown.scaling == "42 requests in flight per replica, target 10"


def test_replicas_that_are_being_added_make_no_service_degraded(platform: Platform) -> None:
    platform.live(**SCALED)
    platform.metrics.in_flight["digits-00001"] = 42
    platform.turn(seconds=11)
    platform.turn(settle=False)
    assert platform.view().phase == "Ready"
    assert platform.view().reason == "digits-00001 serves all traffic; 1 of 5 replicas of digits-00001 are ready"


def test_without_counters_the_number_stays(busy: Platform) -> None:
    busy.metrics.in_flight["digits-00001"] = 0
    busy.metrics.away = "connection refused"
    pass_window(busy)
    assert wanted(busy) == {"digits-00001": 3}


def test_a_fixed_number_reads_no_counters(platform: Platform) -> None:
    platform.live(replicas=2)
    asked = platform.metrics.asked
    platform.turn()
    assert platform.metrics.asked == asked


def test_a_look_that_changes_no_number_is_no_change(busy: Platform) -> None:
    before = InferenceService.objects.get().changes
    busy.turn()
    busy.turn()
    assert InferenceService.objects.get().changes == before


def test_a_canary_has_the_part_of_stables_replicas_that_its_weight_asks_for(busy: Platform) -> None:
    busy.version(2)
    busy.start()
    seen: list[tuple[int, int]] = []
    most = {"digits-00001": 3}

    def over() -> bool:
        weight, replicas = busy.cluster.weights().get("digits-00002", 0), wanted(busy).get("digits-00002", 0)
        observed = busy.cluster.observe("default", "digits").revision("digits-00002")
        ready = observed.ready_replicas if observed is not None else 0
        assert ready * 100 >= 3 * weight, "no weight before there are replicas for it"
        seen.append((weight, replicas))
        most.update(wanted(busy))
        busy.traffic()
        return busy.rollout().phase == "Healthy"

    busy.until(over)
    assert max(replicas for weight, replicas in seen if weight == 10) == 2, "those of the next step come before it"
    assert seen[-1] == (100, 3)
    assert wanted(busy) == {"digits-00001": 3, "digits-00002": 3}, "the old one is kept warm as it was"
    assert most == {"digits-00001": 3, "digits-00002": 3}


def test_stable_keeps_what_it_has_while_another_takes_its_requests(busy: Platform) -> None:
    busy.version(2)
    busy.policy(name="patient", steps=[{"weight": 50, "pause": True}])
    busy.start("2", "patient")
    busy.until(lambda: busy.rollout().phase == "Paused")
    busy.metrics.in_flight.update({"digits-00001": 3, "digits-00002": 2})
    pass_window(busy)
    assert wanted(busy) == {"digits-00001": 3, "digits-00002": 2}
    rollout_abort(rollout_id=busy.rollout().pk, actor="bob", now=busy.clock())
    busy.turn()
    assert wanted(busy)["digits-00001"] == 3, "all its requests come back at once"


def test_a_preview_has_what_stable_has_before_the_switch(busy: Platform) -> None:
    busy.version(2)
    busy.policy(name="switch", strategy="blueGreen", steps=[{"pause": True}])
    busy.start("2", "switch")
    busy.until(lambda: busy.rollout().phase == "Paused")
    assert wanted(busy) == {"digits-00001": 3, "digits-00002": 3}
    assert "Scaled from 1 to 3: 100 % of what digits-00001 has, which is 3" in scaled(busy)


def test_another_worker_goes_on_from_what_is_recorded(busy: Platform) -> None:
    busy.metrics.in_flight["digits-00001"] = 3
    for _ in range(3):
        busy.turn(seconds=100)
    assert wanted(busy) == {"digits-00001": 3}
    service = InferenceService.objects.get()
    busy.clock.go_on(60)
    outside = replace(busy.outside, scale_down_window=timedelta(minutes=5))
    assert reconciler.tick(service.pk, outside) is Outcome.DONE
    busy.clock.go_on(2)
    assert reconciler.tick(service.pk, outside) is Outcome.DONE
    assert wanted(busy) == {"digits-00001": 1}


def test_a_service_says_how_fast_its_replicas_follow_the_load(platform: Platform) -> None:
    slowly = {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 60}]}
    platform.live(**SCALED, autoScaling={"behavior": {"scaleUp": slowly, "scaleDown": {"selectPolicy": "Disabled"}}})
    platform.metrics.in_flight["digits-00001"] = 100
    platform.until(lambda: wanted(platform) == {"digits-00001": 2})
    platform.turn(seconds=50)
    assert wanted(platform) == {"digits-00001": 2}
    platform.turn(seconds=10)
    assert wanted(platform) == {"digits-00001": 3}
    platform.metrics.in_flight["digits-00001"] = 0
    for _ in range(10):
        platform.turn(seconds=50)
    assert wanted(platform)["digits-00001"] >= 3, "never down"


def test_a_change_of_scaling_is_a_new_revision_and_the_way_back_brings_it_back(busy: Platform) -> None:
    busy.apply(policy=None, maxReplicas=4)
    busy.until(lambda: busy.rollout().phase == "Healthy")
    newer = Revision.objects.get(number=2)
    assert (newer.max_replicas, newer.scale_metric, newer.scale_target) == (4, "", None)
    busy.back()
    predictor = InferenceService.objects.get().document["spec"]["predictor"]
    assert {name: predictor[name] for name in SCALED} == SCALED


def test_the_way_back_does_not_wait_for_the_replicas_that_the_load_needs(busy: Platform) -> None:
    busy.promoted(2)
    busy.metrics.in_flight["digits-00002"] = 60
    busy.until(lambda: wanted(busy)["digits-00002"] == 6)
    busy.cluster.most_ready["digits-00001"] = 3
    busy.back()
    busy.until(lambda: busy.cluster.weights() == {"digits-00001": 100, "digits-00002": 0}, turns=3)
    assert wanted(busy)["digits-00001"] == 6


@pytest.fixture
def elsewhere(platform: Platform) -> Platform:
    """A service whose replicas the cluster's own autoscaler has brought to five."""
    platform.live(**SCALED)
    platform.cluster.autoscaled["digits-00001"] = ObservedScaling(5)
    platform.turn()
    platform.turn()
    return platform


def test_where_the_cluster_has_an_autoscaler_only_the_least_number_is_said(elsewhere: Platform) -> None:
    elsewhere.metrics.in_flight["digits-00001"] = 80
    elsewhere.turn(seconds=11)
    assert wanted(elsewhere) == {"digits-00001": 1}
    told = elsewhere.view().revisions[0].scaling
    assert told.startswith("the cluster's autoscaler has come to 5, not below 1")


def test_a_rollout_counts_from_what_the_clusters_autoscaler_made_and_keeps_it(elsewhere: Platform) -> None:
    elsewhere.version(2)
    elsewhere.policy(name="patient", steps=[{"weight": 40, "pause": True}])
    elsewhere.start("2", "patient")
    elsewhere.until(lambda: elsewhere.rollout().phase == "Paused")
    assert wanted(elsewhere) == {"digits-00001": 5, "digits-00002": 2}
    elsewhere.cluster.autoscaled["digits-00001"] = ObservedScaling(7)
    elsewhere.until(lambda: wanted(elsewhere) == {"digits-00001": 7, "digits-00002": 3}, turns=2)
    rollout_abort(rollout_id=elsewhere.rollout().pk, actor="bob", now=elsewhere.clock())
    elsewhere.turn()
    assert wanted(elsewhere)["digits-00001"] == 7, "all its requests come back at once"
    pass_window(elsewhere)
    assert wanted(elsewhere)["digits-00001"] == 1, "then the autoscaler alone decides again"


def test_an_autoscaler_that_sees_nothing_is_stood_in_for_from_its_number(elsewhere: Platform) -> None:
    elsewhere.cluster.autoscaled["digits-00001"] = ObservedScaling(5, "no metrics returned from custom metrics API")
    elsewhere.metrics.in_flight["digits-00001"] = 65
    elsewhere.until(lambda: wanted(elsewhere)["digits-00001"] > 5)
    assert "does not see the load: no metrics returned" in elsewhere.view().revisions[0].scaling


@pytest.mark.parametrize("kind", CompanionKind)
def test_companions_of_a_canary_have_their_part_too(platform: Platform, kind: CompanionKind) -> None:
    companion = {"minReplicas": 1, "maxReplicas": 6, "containers": [{"image": "example.org/tokenizer:1"}]}
    Cluster.objects.create(name="local", kind="kubernetes", created_at=platform.clock())
    platform.version(1)
    platform.version(2)
    platform.policy(name="patient", steps=[{"weight": 50, "pause": True}])
    document = platform.document(policy="patient")
    document["spec"][kind.value] = companion
    service_apply(document=document, namespace=None, name=None, actor="alice", now=platform.clock())
    platform.until(lambda: platform.view().phase == "Ready")
    platform.cluster.companions_autoscaled[f"digits-00001-{kind}"] = ObservedScaling(4)
    platform.start("2")
    platform.cluster.broken[f"digits-00002-{kind}"] = "no such image"
    platform.turn()
    platform.turn()
    platform.turn()
    assert platform.rollout().phase == "Pending"
    assert platform.rollout().reason_message == (f"0 of 1 replicas of the canary are ready (its {kind}: no such image)")
    assert companions(platform, kind) == {"digits-00001": 4, "digits-00002": 2}
    del platform.cluster.broken[f"digits-00002-{kind}"]
    platform.until(lambda: platform.rollout().phase == "Paused")
    rollout_promote(rollout_id=platform.rollout().pk, actor="bob", now=platform.clock())
    platform.until(lambda: platform.rollout().phase == "Healthy")
    assert companions(platform, kind)["digits-00002"] == 4
    pass_window(platform)
    assert companions(platform, kind)["digits-00002"] == 1, "then the cluster's autoscaler alone decides"


def companions(platform: Platform, kind: CompanionKind) -> dict[str, int]:
    """Return how many companions of a kind the cluster was last asked for."""
    revisions = platform.cluster.desired["default", "digits"].revisions
    return {each.name: each.companions[kind].replicas for each in revisions if kind in each.companions}
