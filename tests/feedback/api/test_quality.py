"""Quality by the API: each scorer's revisions with hours and slices, in the scorer's unit."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from accounts.domain.scopes import Scope
from tests import scenes
from tests.feedback._support.scenes import Given, answered, kept, scorer

pytestmark = pytest.mark.django_db
PATH = "/api/v1/services/default/digits/feedback/quality"


def test_quality_is_given_by_scorer_and_revision(
    api: Callable[..., APIClient], django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    service, now = scenes.service(), timezone.now()
    kept(service, now)
    scorers = [scorer(service, now), scorer(service, now, "far", "absoluteError", bound=10)]
    batch = [
        Given(f"r{number}", "digits-00001", now - timedelta(hours=number), loss=float(number == 0), delay_s=30)
        for number in range(4)
    ]
    answered(service, scorers, batch)
    client = api(Scope.READ)
    with django_assert_max_num_queries(10):
        answer = client.get(PATH).json()
    far, right = answer["scorers"]
    assert (answer["service"], answer["days"], far["scorer"], right["scorer"]) == ("default/digits", 7, "far", "right")
    assert (right["unit"], right["recent_scores"], right["delay_s"]) == ("percent wrong", 4, [30.0, 30.0, 30.0])
    (revision,) = right["revisions"]
    assert (revision["name"], revision["role"], revision["model_version"]) == ("digits-00001", "stable", 1)
    assert (revision["scores"], revision["mean"], revision["mean_delay_s"]) == (4, 25.0, 30.0)
    assert 0 < revision["low"] < 25 < revision["high"] < 100
    assert [each["mean"] for each in revision["hours"]] == [0.0, 0.0, 0.0, 100.0]
    assert far["revisions"][0]["mean"] == 2.5


def test_one_scorer_and_a_period_can_be_asked_for(api: Callable[..., APIClient]) -> None:
    service, now = scenes.service(), timezone.now()
    for name in ("a", "b"):
        scorer(service, now, name)
    client = api(Scope.READ)
    assert [each["scorer"] for each in client.get(PATH, {"scorer": "b", "days": "30"}).json()["scorers"]] == ["b"]
    assert client.get(PATH, {"scorer": "c"}).status_code == 404
    for days in ("0", "91", "x", "-1", "1.5", ""):
        refused = client.get(PATH, {"days": days})
        assert refused.status_code == 400, days
        assert refused.json()["error"]["field"] == "days"
    assert client.get(PATH.replace("digits", "other")).status_code == 404
