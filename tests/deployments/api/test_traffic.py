"""`/services/NAMESPACE/NAME/traffic`: columns that are ready to be drawn."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from deployments.domain.service_state.desired import Role
from deployments.models import TrafficPoint
from deployments.services import service_stop
from tests import scenes

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/services/default/digits/traffic"


@pytest.fixture
def client() -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {scenes.token(Scope.READ)}")
    return client


def test_each_revision_has_columns_with_gaps_where_it_did_not_run(client: APIClient) -> None:
    service = scenes.service()
    scenes.traffic(service, 10.0, 20.0, 0.0, errors=0.01)
    canary = scenes.rollout(service).to_revision
    newest = TrafficPoint.objects.latest("at")
    TrafficPoint.objects.create(
        service=service,
        revision=canary,
        at=newest.at,
        seconds=15.0,
        requests=30,
        server_errors=3,
        latency=[[1000.0, 30]],
        replicas=2,
    )

    body = client.get(ADDRESS).json()

    assert body["service"] == "default/digits"
    assert body["at"] == sorted(body["at"])
    assert body["requests"] == 150 + 300 + 30
    stable, new = body["revisions"]
    assert (stable["name"], stable["role"], stable["model_version"]) == ("digits-00001", Role.STABLE, 1)
    assert stable["per_second"] == [10.0, 20.0, 0.0]
    assert stable["error_percent"] == [pytest.approx(1.3, abs=0.1), 1.0, None]
    assert stable["p99_ms"] == [5.0, 5.0, None]
    assert (new["role"], new["per_second"]) == (Role.CANARY, [None, None, 2.0])
    assert (new["error_percent"], new["replicas"]) == ([None, None, 10.0], [None, None, 2.0])


def test_where_nothing_ran_all_columns_have_a_gap(client: APIClient) -> None:
    service, now = scenes.service(), timezone.now()
    scenes.traffic(service, 1.0, 2.0, until=now - timedelta(minutes=5))
    scenes.traffic(service, 3.0, 4.0)

    body = client.get(ADDRESS).json()

    assert body["stopped"] is False
    assert len(body["at"]) == 5
    [stable] = body["revisions"]
    assert stable["per_second"] == [1.0, 2.0, None, 3.0, 4.0]
    assert stable["replicas"] == [1.0, 1.0, None, 1.0, 1.0]


def test_a_stopped_service_ends_with_a_gap(client: APIClient) -> None:
    service = scenes.service()
    scenes.traffic(service, 1.0, 2.0, until=timezone.now() - timedelta(minutes=2))
    service_stop(namespace="default", name="digits", actor="test", now=timezone.now())
    body = client.get(ADDRESS).json()
    assert body["stopped"] is True
    assert body["revisions"][0]["replicas"] == [1.0, 1.0, None]
    assert body["at"][-1] - body["at"][-2] >= 120


def test_how_far_back_is_the_callers_to_say(client: APIClient) -> None:
    service = scenes.service()
    scenes.traffic(service, 1.0, until=timezone.now() - timedelta(minutes=90))
    assert client.get(ADDRESS).json()["at"] == []
    assert len(client.get(f"{ADDRESS}?minutes=120").json()["at"]) == 1


@pytest.mark.parametrize("minutes", ["0", "181", "-1", "all"])
def test_what_is_no_length_is_refused_by_name(client: APIClient, minutes: str) -> None:
    scenes.service()
    answer = client.get(f"{ADDRESS}?minutes={minutes}")
    assert answer.status_code == 400
    assert answer.json()["error"]["field"] == "minutes"


def test_the_number_of_queries_does_not_grow(
    client: APIClient, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    service = scenes.service()
    scenes.traffic(service, 1.0)
    client.get(ADDRESS)  # notes when the token was used
    with CaptureQueriesContext(connection) as asked:
        client.get(ADDRESS)
    scenes.traffic(service, *[1.0] * 30, until=timezone.now() - timedelta(minutes=5))
    scenes.rollout(service)
    with django_assert_num_queries(len(asked)):
        client.get(ADDRESS)
