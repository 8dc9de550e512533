"""`/api/v1/rollouts/ID/evidence`."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from deployments.models import AnalysisRun
from tests import measuring, scenes

pytestmark = pytest.mark.django_db
Api = Callable[..., APIClient]


def test_every_measurement_comes_as_columns_through_the_steps_of_the_attempt(api: Api) -> None:
    row = scenes.rollout(scenes.service())
    row.confirmed_at -= timedelta(minutes=10)
    row.save()
    measuring.measure(row, looks=20, canary_errors=0.0)
    AnalysisRun.objects.update(finished_at=row.confirmed_at)
    scenes.move(row, step_index=1)
    measuring.measure(row, looks=30, canary_errors=0.3)

    found = api(Scope.READ).get(f"/api/v1/rollouts/{row.pk}/evidence").json()

    series = {each["metric"]: each for each in found["series"]}
    assert set(series) == {"server_errors", "server_error_increase", "client_error_increase", "slow_requests"}
    errors = series["server_errors"]
    assert (found["attempt"], errors["unit"], errors["in_background"]) == (1, "percent", False)
    assert {len(errors[name]) for name in ("at", "step_index", "canary", "low", "high", "evidence_percent")} == {50}
    assert errors["at"] == sorted(errors["at"])
    assert errors["step_index"] == [0] * 20 + [1] * 30
    assert errors["evidence_percent"][19] == 0
    assert errors["evidence_percent"][-1] == 100, "three in ten fail against a limit of one in a hundred"
    assert errors["low"][19] < errors["limit"][-1] < errors["low"][-1]
    assert all(
        low <= seen <= high for low, seen, high in zip(errors["low"], errors["canary"], errors["high"], strict=True)
    )


def test_what_came_after_the_last_point_is_the_newest_of_all(api: Api) -> None:
    row = scenes.rollout(scenes.service())
    measuring.measure(row, looks=20, canary_errors=0.0)
    later = row.confirmed_at + timedelta(seconds=7)
    AnalysisRun.objects.update(canary_requests=999, finished_at=later)

    found = api(Scope.READ).get(f"/api/v1/rollouts/{row.pk}/evidence").json()["series"][0]

    assert (found["canary_requests"][-1], found["at"][-1]) == (999, pytest.approx(later.timestamp(), abs=0.01))


def test_an_earlier_attempt_can_be_asked_for(api: Api) -> None:
    row = scenes.rollout(scenes.service())
    measuring.measure(row, looks=5, canary_errors=0.0)
    row.attempt = 2
    row.save()
    where, client = f"/api/v1/rollouts/{row.pk}/evidence", api(Scope.READ)

    assert client.get(where).json()["series"] == []
    assert len(client.get(f"{where}?attempt=1").json()["series"]) == 4
    assert client.get(f"{where}?attempt=3").status_code == 404
    refused = client.get(f"{where}?attempt=last").json()["error"]
    assert (refused["field"], refused["message"]) == ("attempt", "attempt is 'last'; expected a number from 1 on")


def test_the_number_of_queries_does_not_grow_with_the_history(
    api: Api, django_assert_num_queries: DjangoAssertNumQueries, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    row, client = scenes.rollout(scenes.service()), api(Scope.READ)
    client.get("/api/v1/whoami")  # the first use of a token is written down
    with django_assert_max_num_queries(9) as first:
        client.get(f"/api/v1/rollouts/{row.pk}/evidence")
    measuring.measure(row, looks=40, canary_errors=0.0)
    scenes.move(row, step_index=1)
    measuring.measure(row, looks=40, canary_errors=0.0)

    with django_assert_num_queries(len(first)):
        client.get(f"/api/v1/rollouts/{row.pk}/evidence")
