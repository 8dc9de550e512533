"""`/services/NAMESPACE/NAME/objectives`: what is left of error budgets, of clients' requests alone."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from deployments.models import InferenceService, TrafficPoint
from deployments.reconcile.participants import traffic
from deployments.selectors import service_error_budgets
from tests import scenes
from tests.deployments._support.platform import Platform

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/services/default/digits/objectives"


@pytest.fixture
def client() -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {scenes.token(Scope.READ)}")
    return client


def with_objectives(service: InferenceService) -> InferenceService:
    objectives = {"availability": 99, "latency": {"percent": 95, "withinMs": 3}}
    service.document["spec"]["objectives"] = objectives
    service.save(update_fields=["document"])
    return service


def sampled(platform: Platform) -> None:
    """Go on until the next sample of the traffic."""
    before = InferenceService.objects.get().traffic_at
    platform.until(lambda: InferenceService.objects.get().traffic_at != before)


def test_budgets_are_of_the_history_that_is_kept(client: APIClient) -> None:
    service = with_objectives(scenes.service())
    scenes.traffic(service, *[10.0] * 4, until=timezone.now() - traffic.KEPT, errors=1.0)
    scenes.traffic(service, 10.0, 10.0, errors=0.01)

    body = client.get(ADDRESS).json()

    availability, latency = body["budgets"]
    assert body["window_days"] == 30
    assert timezone.now() - datetime.fromisoformat(body["since"]) < 3 * traffic.EVERY
    assert (availability["objective"], availability["target_percent"]) == ("availability", 99)
    assert availability["within_ms"] is None
    assert (availability["requests"], availability["failures"]) == (300, 4)
    assert availability["burn_rate"] == pytest.approx(4 / 3)
    assert availability["left_percent"] == 0
    assert (latency["target_percent"], latency["within_ms"]) == (95, 3)
    assert (latency["requests"], latency["failures"]) == (300, 6)
    assert (latency["measured_percent"], latency["left_percent"]) == (98.0, 60.0)


def test_a_service_without_objectives_or_without_requests_says_so(client: APIClient) -> None:
    service = scenes.service()
    assert client.get(ADDRESS).json() == {"window_days": 30, "since": None, "budgets": []}
    with_objectives(service)
    body = client.get(ADDRESS).json()
    assert body["since"] is None
    assert [each["left_percent"] for each in body["budgets"]] == [None, None]
    assert client.get("/api/v1/services/default/other/objectives").status_code == 404


def test_reading_takes_one_query_for_any_history(django_assert_num_queries: DjangoAssertNumQueries) -> None:
    service = scenes.service()
    arguments: dict[str, Any] = {"now": timezone.now() + timedelta(seconds=1), "kept": traffic.KEPT}
    with django_assert_num_queries(0):
        assert service_error_budgets(service=service, **arguments).budgets == ()
    scenes.traffic(with_objectives(service), *[1.0] * 50)
    with django_assert_num_queries(1):
        assert service_error_budgets(service=service, **arguments).budgets[0].requests == 750


def test_copies_to_a_shadow_and_mistakes_of_callers_do_not_count(platform: Platform) -> None:
    platform.live()
    platform.version(2)
    platform.policy(name="copies", strategy="shadow", steps=[{"weight": 100, "hold": "1h"}])
    platform.start(policy="copies")
    platform.until(lambda: platform.cluster.copies().get("digits-00002") == 100)
    sampled(platform)
    TrafficPoint.objects.all().delete()
    platform.metrics.serve("digits-00001", 50, failed=2, refused=30)
    platform.metrics.serve("digits-00002", 50, slow=50, copies=True)
    sampled(platform)

    service = with_objectives(InferenceService.objects.get())
    found = service_error_budgets(service=service, now=platform.clock(), kept=traffic.KEPT)

    assert dict(TrafficPoint.objects.values_list("revision__name", "has_weight")) == {
        "digits-00001": True,
        "digits-00002": False,
    }
    assert [(each.requests, each.failures) for each in found.budgets] == [(20, 2), (50, 0)]
