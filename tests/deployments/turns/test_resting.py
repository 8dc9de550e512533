"""Which settled services need a turn: those whose objects changed, and each once in a while for its traffic."""

from dataclasses import dataclass
from typing import cast

import pytest

from deployments.domain.service_state.quiescence import TOUCHED, UNSETTLED
from deployments.models import InferenceService, TrafficPoint
from deployments.reconcile.schedule import SettledRow
from deployments.reconcile.service_change import columns_of
from deployments.turns.resting import Resting
from integrations.clusters.base import ClusterDriver, Observed
from integrations.clusters.unavailable_driver import away
from tests.deployments._support.fakes import FakeCluster
from tests.deployments._support.platform import Platform


@dataclass
class Marked:
    """A cluster that knows its services' objects by a mark."""

    found: object = 1

    def mark(self, _namespace: str, _service: str) -> object:
        return self.found


def settled(platform: Platform) -> SettledRow:
    service = platform.live()
    for _ in range(3):
        platform.turn(seconds=60)
    service.refresh_from_db()
    assert service.settled == service.changes
    TrafficPoint.objects.filter(service=service).update(requests=0)
    return SettledRow(service.pk, service.cluster_id, service.namespace, service.name, service.changes)


def test_a_service_rests_until_its_mark_or_its_changes_differ_or_time_has_passed(platform: Platform) -> None:
    row, cluster, resting = settled(platform), Marked(), Resting()
    driver = cast(ClusterDriver, cluster)

    def rests(now: float, row: SettledRow = row) -> bool:
        rest, stir = resting.split([row], {row.cluster_id: driver}, now)
        assert (rest, stir) in (([row.pk], []), ([], [row]))
        return bool(rest)

    assert not rests(0.0), "nothing is known of it yet"
    resting.turned_to(row.pk, driver, 0.0)
    assert rests(1499.0)
    assert not rests(1500.0)
    assert not rests(1.0, row._replace(changes=row.changes + 1))
    cluster.found = 2
    assert not rests(1.0)
    cluster.found = None
    resting.turned_to(row.pk, driver, 0.0)
    assert not rests(1.0), "not all of it is watched"


def test_idle_services_are_sampled_at_a_limited_rate_together(platform: Platform) -> None:
    row, driver, resting = settled(platform), cast(ClusterDriver, Marked()), Resting()
    resting.turned_to(row.pk, driver, 0.0)

    def sampled(now: float) -> int:
        return len(resting.split([row] * 20, {row.cluster_id: driver}, now)[1])

    assert [sampled(now) for now in (1500.0, 1500.5, 1500.6, 1501.0, 1600.0)] == [4, 2, 1, 1, 4]


def test_a_service_with_requests_is_sampled_every_minute(platform: Platform) -> None:
    row, driver, resting = settled(platform), cast(ClusterDriver, Marked()), Resting()
    TrafficPoint.objects.filter(service=row.pk).update(requests=5)
    InferenceService.objects.filter(pk=row.pk).update(
        ticked_at=TrafficPoint.objects.filter(service=row.pk).latest("at").at
    )
    resting.turned_to(row.pk, driver, 0.0)
    assert resting.split([row], {row.cluster_id: driver}, 59.0) == ([row.pk], [])
    assert resting.split([row], {row.cluster_id: driver}, 60.0) == ([], [row])


@dataclass
class Watched:
    """The platform's cluster, with a mark of its services' objects."""

    cluster: FakeCluster
    found: object = 1

    def mark(self, _namespace: str, _service: str) -> object:
        return self.found

    def observe(self, namespace: str, service: str) -> Observed:
        return self.cluster.observe(namespace, service)


def test_a_sample_stores_the_traffic_and_changes_nothing_else(platform: Platform) -> None:
    row, resting, driver = settled(platform), Resting(), cast(ClusterDriver, Watched(platform.cluster))
    service = InferenceService.objects.get(pk=row.pk)
    assert not resting.sample(row.pk, driver, platform.metrics, 0.0), "nothing is known of it yet"
    resting.turned_to(row.pk, driver, 0.0)
    platform.metrics.serve(f"{row.name}-00001", 40)
    before = TrafficPoint.objects.count()
    assert resting.sample(row.pk, driver, platform.metrics, 1400.0)
    point = TrafficPoint.objects.latest("at")
    assert (TrafficPoint.objects.count(), point.requests, point.has_weight) == (before + 1, 40, True)
    after = InferenceService.objects.get(pk=row.pk)
    assert after.ticked_at is not None
    assert service.ticked_at is not None
    assert after.ticked_at > service.ticked_at
    written = {"ticked_at", "traffic_at", "seen_at"}
    assert {name for name, value in columns_of(service).items() if columns_of(after)[name] != value} == written
    assert resting.split([row], {row.cluster_id: driver}, 1459.0) == ([row.pk], []), "it has requests"
    assert resting.split([row], {row.cluster_id: driver}, 1460.0) == ([], [row])
    assert resting.sample(row.pk, driver, platform.metrics, 1460.0)
    assert resting.split([row], {row.cluster_id: driver}, 1500.0) == ([], [row])
    assert not resting.sample(row.pk, driver, platform.metrics, 1500.0), "what no watch reports is found by a turn"


@pytest.mark.parametrize("change", [{"changes": 99}, {"settled": TOUCHED}, {"settled": UNSETTLED}])
def test_one_that_was_changed_or_touched_or_has_a_turn_gets_no_sample(
    platform: Platform, change: dict[str, int]
) -> None:
    row, resting, driver = settled(platform), Resting(), cast(ClusterDriver, Watched(platform.cluster))
    resting.turned_to(row.pk, driver, 0.0)
    before = TrafficPoint.objects.count()
    InferenceService.objects.filter(pk=row.pk).update(**change)
    assert not resting.sample(row.pk, driver, platform.metrics, 60.0)
    assert TrafficPoint.objects.count() == before
    InferenceService.objects.filter(pk=row.pk).update(changes=row.changes, settled=row.changes)
    assert not resting.sample(row.pk, driver, platform.metrics, 60.0), "it is known again after a turn"


def test_one_whose_objects_changed_or_cannot_be_seen_gets_no_sample(platform: Platform) -> None:
    row, resting, cluster = settled(platform), Resting(), Watched(platform.cluster)
    resting.turned_to(row.pk, cast(ClusterDriver, cluster), 0.0)
    assert not resting.sample(row.pk, cast(ClusterDriver, away("it is away")), platform.metrics, 60.0)
    cluster.found = 2
    assert not resting.sample(row.pk, cast(ClusterDriver, cluster), platform.metrics, 60.0)


def test_counters_that_cannot_be_read_are_left_for_the_next_sample(platform: Platform) -> None:
    row, resting, driver = settled(platform), Resting(), cast(ClusterDriver, Watched(platform.cluster))
    resting.turned_to(row.pk, driver, 0.0)
    before = TrafficPoint.objects.count()
    platform.metrics.serve(f"{row.name}-00001", 40)
    platform.metrics.away = "the pod does not answer"
    assert resting.sample(row.pk, driver, platform.metrics, 60.0)
    assert TrafficPoint.objects.count() == before
    platform.metrics.away = ""
    assert resting.sample(row.pk, driver, platform.metrics, 120.0)
    assert TrafficPoint.objects.latest("at").requests == 40


def test_no_service_of_a_cluster_that_is_away_rests(platform: Platform) -> None:
    row, resting = settled(platform), Resting()
    resting.turned_to(row.pk, cast(ClusterDriver, Marked()), 0.0)
    assert resting.split([row], {row.cluster_id: away("it is away")}, 1.0) == ([], [row])
