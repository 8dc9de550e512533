"""The page of the platform's own parts."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings

from accounts.domain.scopes import Scope
from clusters.models import Cluster
from clusters.services.cluster_selection import cluster_default
from clusters.web.cluster_views import Part, limits_of, parts_of
from deployments.models import InferenceService
from deployments.reconcile.restarts import note_components
from deployments.tasks import sweep
from integrations.clusters.base import Component, Nodes
from tests import scenes
from tests._support.page import marked
from tests.deployments._support.cluster_files import LEAST

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


def test_a_silent_cluster_that_is_left_alone_for_a_while_is_no_fault_of_the_worker() -> None:
    looked, look_at = NOW - timedelta(seconds=29), NOW + timedelta(seconds=1)
    cluster = Cluster(name="production", components=SEEN, checked_at=looked, look_at=look_at, problem="it is away")
    assert [part.state for part in parts_of(cluster, NOW)] == ["unknown", "unknown", "up"]


LIMITS = [
    {
        "name": "open files",
        "whose": "gateway",
        "used": 900,
        "most": 1024,
        "level": "close",
        "message": "gateway uses 900 of 1,024 open files; at the limit …",
    },
    {"name": "processes", "whose": "user 7", "used": 1200, "most": 32768, "level": "fine", "message": ""},
    {"name": "memory", "whose": "", "used": None, "most": None, "level": "unknown", "message": ""},
]


@pytest.mark.parametrize(
    ("checked_at", "problem", "levels"),
    [
        pytest.param(NOW, "", ["close", "fine", "unknown"], id="just looked at"),
        pytest.param(NOW - timedelta(seconds=16), "", ["unknown"] * 3, id="nobody looks any more"),
        pytest.param(NOW, "the agent is silent", ["unknown"] * 3, id="looked at, but nothing was seen"),
    ],
)
def test_limits_are_shown_as_they_were_seen_lately(checked_at: datetime, problem: str, levels: list[str]) -> None:
    rows = limits_of(Cluster(name="local", limits=LIMITS, checked_at=checked_at, problem=problem), NOW)
    assert [row.level for row in rows] == levels
    assert [bool(row.message) for row in rows] == [level == "close" for level in levels]
    assert rows[1].use == ("1,200 of 32,768 (user 7)" if levels[1] == "fine" else "")


def test_the_limits_of_the_machine_are_on_the_page_and_none_of_a_cluster_of_several(client: Client) -> None:
    cluster_default(now=timezone.now())
    _production()
    assert "limits" not in client.get("/platform/").content.decode().partition("<main")[2]
    Cluster.objects.filter(name="local").update(limits=LIMITS, checked_at=timezone.now())
    page = client.get("/platform/").content.decode()
    assert page.count('data-testid="limits"') == 1
    assert "Gateway uses 900 of 1,024 open files" in page


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
    with django_assert_max_num_queries(6):
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
    assert marked(client.get("/platform/").content.decode(), "no-cluster")


def test_services_that_everybody_may_call_are_listed(client: Client) -> None:
    for name, access in (("old", None), ("open", "public"), ("closed", "authenticated"), ("named", {"keys": ["ci"]})):
        InferenceService.objects.filter(pk=scenes.service(name).pk).update(access=access)
    page = client.get("/platform/").content.decode()
    assert len(marked(page, "what-public-is")) == 1
    listed = page.partition("what-public-is")[2].partition("</section>")[0]
    assert [name for name in ("closed", "named", "old", "open") if f"default/{name}<" in listed] == ["old", "open"]
    InferenceService.objects.update(access="authenticated")
    assert not marked(client.get("/platform/").content.decode(), "what-public-is")


def _production() -> Cluster:
    document = {**LEAST, "connection": {"kubeconfig": "stored"}}
    return Cluster.objects.create(
        name="production",
        kind="kubernetes",
        document=document,
        credentials="sealed",
        gateway_url="https://models.example.com",
        components={"gateway": {"ready": False, "restarts": 0, "message": "no controller took it"}},
        checked_at=timezone.now(),
        created_at=timezone.now(),
    )


def test_a_cluster_is_shown_with_what_runs_there_in_as_many_queries_for_many_services(client: Client) -> None:
    cluster, counts = _production(), []
    for services in (1, 12):
        for number in range(services):
            InferenceService.objects.get_or_create(
                cluster=cluster,
                namespace="default",
                name=f"digits-{number}",
                defaults={
                    "document": {},
                    "reason": "the cluster cannot be read: it is away",
                    "created_at": timezone.now(),
                },
            )
        with CaptureQueriesContext(connection) as asked:
            page = client.get("/platform/clusters/production/").content.decode()
        counts.append(len(asked))
        assert page.count(">default/digits-") == services
    assert counts[0] == counts[1]
    for told in ("no controller took it", "by a kubeconfig that is stored", "https://models.example.com", "it is away"):
        assert told.lower() in page.lower()
    assert "sealed" not in page
    assert "Check now" not in page, "that is for administrators"


def test_since_when_a_cluster_is_silent_is_shown(client: Client) -> None:
    _production()
    Cluster.objects.update(problem="it is away", silent_since=timezone.now())
    for address in ("/platform/", "/platform/clusters/production/"):
        assert "Silent since" in client.get(address).content.decode()


def test_a_cluster_that_is_not_there(client: Client) -> None:
    assert client.get("/platform/clusters/nowhere/").status_code == 404


def test_an_administrator_checks_a_cluster_on_a_page_and_on_its_own(db: None) -> None:
    _production()
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.ADMIN)})
    assert "Check now" in client.get("/platform/clusters/production/").content.decode()
    page = client.get("/platform/clusters/production/check").content.decode()
    fragment = client.get("/platform/clusters/production/check", headers={"HX-Request": "true"}).content.decode()
    assert "<html" in page
    assert "<html" not in fragment
    for answer in (page, fragment):
        assert "cannot be read with the present FAIRLEAD_SECRET_KEY" in answer
        assert "Apply the cluster file" in answer


def test_a_reader_checks_nothing(client: Client) -> None:
    _production()
    assert client.get("/platform/clusters/production/check").status_code == 403


def test_an_administrator_says_what_an_hour_costs(db: None) -> None:
    scenes.traffic(scenes.service(), *[100.0] * 4)
    client = Client()
    client.post("/signin/", {"token": scenes.token(Scope.ADMIN)})
    form = {"currency": "EUR", "price replica": "0,6", "price nvidia.com/gpu": " "}

    answer = client.post("/platform/clusters/local/prices", form)

    assert answer["Location"] == "/platform/clusters/local/"
    assert Cluster.objects.get().prices == {"currency": "EUR", "per_hour": {"replica": 0.6}}
    assert 'value="0.6"' in client.get("/platform/clusters/local/").content.decode()
    page = client.get("/services/default/digits/").content.decode().replace("\N{NO-BREAK SPACE}", " ")
    assert "0.0017 EUR" in page
    refused = client.post("/platform/clusters/local/prices", {"currency": "EUR", "price replica": "much"})
    assert refused.status_code == 400
    assert "er_hour.replica" in refused.content.decode()


def test_a_reader_sets_no_prices(client: Client) -> None:
    scenes.service()
    assert client.post("/platform/clusters/local/prices", {"currency": "EUR"}).status_code == 403
    assert 'id="prices"' not in client.get("/platform/clusters/local/").content.decode()
