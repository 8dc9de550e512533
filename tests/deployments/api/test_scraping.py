"""What Prometheus is told to scrape."""

from collections.abc import Callable

from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from rest_framework.test import APIClient

from accounts import teams
from accounts.roles import Owned, Role
from accounts.scopes import Scope
from deployments.models import InferenceService
from tests import scenes
from tests.deployments._support.platform import Platform

Api = Callable[..., APIClient]
URL = "/api/v1/prometheus/targets"


def seen(service: InferenceService, **ports: int) -> None:
    service.observed = {
        name.replace("_", "-"): {"metrics_urls": [f"http://127.0.0.1:{port}/metrics"]} for name, port in ports.items()
    }
    service.save()


def test_every_replica_is_a_target_with_its_revision_as_a_label(platform: Platform, api: Api) -> None:
    platform.live()
    platform.version(2)
    platform.start()
    seen(InferenceService.objects.get(), digits_00001=9001, digits_00002=9002)
    answer = api(Scope.READ).get(URL)
    assert answer.headers["Content-Type"] == "application/json"  # Prometheus takes no other
    stable, canary = answer.json()
    assert stable["targets"] == ["127.0.0.1:9001"]
    assert canary == {
        "targets": ["127.0.0.1:9002"],
        "labels": {
            "__scheme__": "http",
            "__metrics_path__": "/metrics",
            "namespace": "default",
            "service": "digits",
            "revision": "digits-00002",
        },
    }


def test_services_of_other_teams_are_no_targets(db: None, api: Api) -> None:
    seen(scenes.service(), digits_00001=9001)
    admin, member = api(Scope.READ, "first"), api(Scope.READ, "second")
    assert len(member.get(URL).json()) == 1
    now = timezone.now()
    teams.member_set(team="default", username="second", role=Role.VIEWER, actor="test", now=now)
    teams.team_create(name="blue", actor="test", now=now)
    teams.ownership_set(team="blue", kind=Owned.NAMESPACE, name="default", actor="test", now=now)
    assert member.get(URL).json() == []
    assert len(admin.get(URL).json()) == 1


def test_more_services_cost_no_more_queries(
    db: None, api: Api, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    client = api(Scope.READ)
    seen(scenes.service(), digits_00001=9001)
    client.get(URL)
    with django_assert_num_queries(4):
        client.get(URL)
    seen(scenes.service("another"), another_00001=9002)
    with django_assert_num_queries(4):
        assert len(client.get(URL).json()) == 2
