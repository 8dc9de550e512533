"""Which settled services need a turn: those whose objects changed, and each once in a while for its traffic."""

from dataclasses import dataclass
from typing import cast

from deployments.models import InferenceService, TrafficPoint
from deployments.reconcile.schedule import SettledRow
from deployments.turns.resting import Resting
from integrations.clusters.base import ClusterDriver
from integrations.clusters.unavailable_driver import away
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


def test_no_service_of_a_cluster_that_is_away_rests(platform: Platform) -> None:
    row, resting = settled(platform), Resting()
    resting.turned_to(row.pk, cast(ClusterDriver, Marked()), 0.0)
    assert resting.split([row], {row.cluster_id: away("it is away")}, 1.0) == ([], [row])
