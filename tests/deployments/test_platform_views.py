"""The page of the platform's own parts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from accounts.scopes import Scope
from deployments.models import Cluster
from deployments.platform_views import Part, parts_of
from deployments.services import cluster_default
from deployments.tasks import sweep
from deployments.watching import note_components
from integrations.clusters.base import Component, Nodes
from tests import scenes

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SEEN = {"envoy": {"ready": True, "restarts": 0, "message": ""}, "web": {"ready": False, "restarts": 2, "message": "m"}}


@pytest.mark.parametrize(
    ("checked_at", "problem", "states"),
    [
        pytest.param(NOW, "", ["up", "down", "up"], id="just looked at"),
        pytest.param(NOW - timedelta(seconds=15), "", ["up", "down", "up"], id="looked at lately"),
        pytest.param(NOW - timedelta(seconds=16), "", ["unknown", "unknown", "down"], id="nobody looks any more"),
        pytest.param(None, "", ["unknown", "unknown", "down"], id="nobody has looked yet"),
        pytest.param(NOW, "the agent is silent", ["unknown", "unknown", "up"], id="looked at, but nothing was seen"),
    ],
)
def test_what_is_not_known_is_not_said(checked_at: datetime | None, problem: str, states: list[str]) -> None:
    parts = parts_of(Cluster(name="local", components=SEEN, checked_at=checked_at, problem=problem), NOW)
    assert [part.state for part in parts] == states
    assert parts[1] == Part("web", states[1], 2, "m")
    assert [part.name for part in parts] == ["envoy", "web", "beat"]


@pytest.fixture
def client(db: None) -> Client:
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.READ)})
    return client


def test_parts_and_their_restarts_are_shown(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    cluster = cluster_default(now=timezone.now())
    for restarts in range(30):
        nodes = Nodes((Component("envoy", ready=True, restarts=restarts, message="ended by SIGKILL"),))
        note_components(cluster_id=cluster.pk, nodes=nodes, now=timezone.now())
    with django_assert_max_num_queries(5):
        page = client.get("/platform/").content.decode()
    assert "Envoy ended by itself and was started again (restart 29)" in page
    assert page.count("was started again") == 25
    assert 'data-state="up"' in page


def test_a_silent_agent_is_told_about_with_the_reason(client: Client, settings: Settings, tmp_path: Path) -> None:
    settings.CLUSTER_FOLDER = tmp_path / "nothing"
    sweep()
    page = client.get("/platform/").content.decode()
    assert "The local agent has not run in" in page
    assert Cluster.objects.get().checked_at is not None
    note_components(cluster_id=Cluster.objects.get().pk, nodes=Nodes(), now=timezone.now())
    assert "has not run" not in client.get("/platform/").content.decode()


def test_before_the_worker_has_begun_it_says_so(client: Client) -> None:
    assert "No cluster yet" in client.get("/platform/").content.decode()
