"""What the reconciler keeps of a service's traffic, and what is made of it for pages."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from common.errors import Unavailable
from deployments.models import InferenceService, TrafficPoint
from deployments.reconcile.participants import traffic
from deployments.selectors import traffic_of
from deployments.selectors.traffic.recent import Counted, quantile_edge, rates_of
from deployments.services import service_resume, service_stop
from deployments.services.retention import traffic_forget
from deployments.views.traffic import BARS
from tests import scenes
from tests.deployments._support.platform import Platform

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def points() -> list[tuple[str, int, int, int]]:
    columns = ("revision__name", "requests", "server_errors", "replicas")
    return list(TrafficPoint.objects.order_by("at", "revision__number").values_list(*columns))


def looked(platform: Platform) -> None:
    """Go on until the next look is over."""
    before = InferenceService.objects.get().traffic_at
    platform.until(lambda: InferenceService.objects.get().traffic_at != before)


def test_the_difference_between_two_looks_is_kept(platform: Platform) -> None:
    platform.live()
    looked(platform)
    TrafficPoint.objects.all().delete()
    platform.metrics.serve("digits-00001", 300, failed=3, slow=30)
    looked(platform)

    assert points() == [("digits-00001", 300, 3, 1)]
    point = TrafficPoint.objects.get()
    assert point.seconds >= traffic.EVERY.total_seconds()
    assert sum(count for _, count in point.latency) == 300


def test_each_revision_of_a_rollout_has_its_own(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.policy(name="half", steps=[{"weight": 50, "hold": "1h"}])
    platform.start(policy="half")
    platform.until(lambda: platform.cluster.weights().get("digits-00002") == 50)
    looked(platform)
    TrafficPoint.objects.all().delete()
    platform.metrics.serve("digits-00001", 50)
    platform.metrics.serve("digits-00002", 40, failed=4)
    looked(platform)

    assert [(name, requests, errors) for name, requests, errors, _ in points()] == [
        ("digits-00001", 50, 0),
        ("digits-00002", 40, 4),
    ]


def test_that_somebody_looked_is_no_change_of_the_service(platform: Platform) -> None:
    platform.live()
    looked(platform)
    before = InferenceService.objects.get().changes
    looked(platform)
    assert InferenceService.objects.get().changes == before


def test_counters_that_cannot_be_read_leave_the_difference_to_the_next_look(
    platform: Platform, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform.live()
    looked(platform)
    TrafficPoint.objects.all().delete()
    asked = []

    def refuse(_seen: object) -> None:
        asked.append(1)
        raise Unavailable("the metrics page does not answer")

    with monkeypatch.context() as patch:
        patch.setattr(type(platform.metrics), "__call__", lambda _self, seen: refuse(seen))
        platform.metrics.serve("digits-00001", 200)
        looked(platform)
        platform.turn()
    assert len(asked) == 1, "it is left alone until the next look is due"
    assert points() == []
    looked(platform)

    assert [requests for _, requests, _, _ in points()] == [200]
    assert TrafficPoint.objects.get().seconds >= 2 * traffic.EVERY.total_seconds()


def test_a_point_does_not_reach_over_the_time_in_which_the_service_was_stopped(platform: Platform) -> None:
    platform.live()
    looked(platform)
    looked(platform)
    who = {"namespace": "default", "name": "digits", "actor": "bob"}
    service_stop(**who, now=platform.clock())
    platform.until(lambda: platform.view().phase == "Stopped" and platform.view().waits is None)
    platform.clock.go_on(300)
    service_resume(**who, now=platform.clock())
    platform.until(lambda: platform.view().phase == "Ready")
    resumed_at = InferenceService.objects.get().live_at
    platform.metrics.serve("digits-00001", 30)
    looked(platform)
    platform.metrics.serve("digits-00001", 70)
    looked(platform)

    since = list(TrafficPoint.objects.filter(at__gt=resumed_at).order_by("at"))
    assert [(point.requests, point.replicas) for point in since] == [(30, 1), (70, 1)]
    assert since[0].at - timedelta(seconds=since[0].seconds) >= resumed_at


def test_most_ticks_ask_for_no_traffic(platform: Platform) -> None:
    platform.live()
    looked(platform)
    with CaptureQueriesContext(connection) as asked:
        platform.turn()
    assert not [query for query in asked.captured_queries if "traffic" in query["sql"].replace("traffic_at", "")]


def test_a_list_has_rate_errors_and_p99_of_each_service() -> None:
    busy, idle = scenes.service(), scenes.service("idle")
    scenes.traffic(busy, *[10.0] * 10, 20.0, errors=0.02)
    scenes.traffic(idle, 0.0, 0.0)
    unseen = scenes.service("unseen")

    found = traffic_of([busy.pk, idle.pk, unseen.pk], timezone.now())

    assert found[busy.pk].per_second == pytest.approx(20.0)
    assert found[busy.pk].error_percent == pytest.approx(2.0, abs=0.1)
    assert found[busy.pk].p99_ms == 5.0
    assert len(found[busy.pk].rates) == BARS
    assert found[busy.pk].rates[0] is None
    assert (found[idle.pk].per_second, found[idle.pk].error_percent, found[idle.pk].p99_ms) == (0.0, None, None)
    assert unseen.pk not in found


def test_what_nobody_looked_at_lately_has_no_rate_now() -> None:
    service = scenes.service()
    scenes.traffic(service, 10.0, until=timezone.now() - timedelta(minutes=2))
    assert traffic_of([service.pk], timezone.now())[service.pk].per_second is None


def test_it_takes_two_queries_however_many_services(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    services = [scenes.service(name) for name in ("a", "b", "c")]
    for service in services:
        scenes.traffic(service, 1.0, 2.0)
    with django_assert_num_queries(2):
        traffic_of([service.pk for service in services], timezone.now())


def test_old_points_are_forgotten() -> None:
    service = scenes.service()
    scenes.traffic(service, 1.0, 1.0)
    scenes.traffic(service, 1.0, until=timezone.now() - timedelta(hours=4))
    assert traffic_forget(now=timezone.now(), older_than=traffic.KEPT) == 1
    assert TrafficPoint.objects.count() == 2


def test_a_rate_is_spread_over_the_time_between_two_looks() -> None:
    begin, end = NOON, NOON + timedelta(seconds=40)
    slow = Counted(NOON + timedelta(seconds=30), 20.0, 100, 0)
    assert rates_of([slow], begin, end, 4) == pytest.approx((None, 5.0, 5.0, None), nan_ok=True)


def test_revisions_at_one_look_add_up() -> None:
    at = NOON + timedelta(seconds=10)
    both = [Counted(at, 10.0, 100, 0), Counted(at, 10.0, 50, 0)]
    assert rates_of(both, NOON, NOON + timedelta(seconds=20), 2) == (15.0, None)


@pytest.mark.parametrize(
    ("histograms", "edge"),
    [
        pytest.param([], None, id="no requests"),
        pytest.param([[(1000.0, 99), (5000.0, 1)]], 1000.0, id="just within"),
        pytest.param([[(1000.0, 98), (5000.0, 2)]], 5000.0, id="just beyond"),
        pytest.param([[(1000.0, 49)], [(1000.0, 49), (5000.0, 2)]], 5000.0, id="several together"),
        pytest.param([[(1000.0, 1), (None, 9)]], None, id="above all edges"),
    ],
)
def test_a_quantile_is_the_edge_that_enough_did_not_pass(
    histograms: list[list[tuple[float | None, int]]], edge: float | None
) -> None:
    assert quantile_edge(histograms, 0.99) == edge


def test_of_a_service_that_is_looked_at_rarely_the_last_point_stands_until_the_next_is_due() -> None:
    service = scenes.service()
    counts = {"seconds": 400.0, "requests": 4000, "server_errors": 40, "latency": [[5000.0, 4000]], "replicas": 1}
    TrafficPoint.objects.create(service=service, revision=service.revisions.get(), at=NOON, **counts)
    now = NOON + timedelta(seconds=500)
    seen = traffic_of([service.pk], now)[service.pk]
    assert (seen.per_second, seen.requests, seen.error_percent, seen.p99_ms) == (10.0, 4000, 1.0, 5.0)
    late = traffic_of([service.pk], NOON + timedelta(seconds=601))[service.pk]
    assert (late.per_second, late.requests) == (None, 0)
