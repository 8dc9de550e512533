"""What Prometheus is told to scrape."""

import os
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from django.utils import timezone
from pytest_django import DjangoAssertNumQueries
from pytest_django.fixtures import Settings
from rest_framework.test import APIClient

from accounts.domain.roles import Owned, Role
from accounts.domain.scopes import Scope
from accounts.services import teams
from deployments.models import InferenceService
from integrations.clusters.base import Component, Observed, ObservedReplica, ObservedRevision, ReplicaPhase
from integrations.clusters.local.documents import cluster_status_to_json, observed_to_json
from integrations.clusters.local.files import ClusterStatus, Layout, write_json
from integrations.metrics.pages import unix_url
from tests import scenes
from tests.deployments._support.platform import Platform

Api = Callable[..., APIClient]
URL = "/api/v1/prometheus/targets"
REPLICA = "digits-00001-0"


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "5")
        self.end_headers()
        self.wfile.write(b"up 1\n")

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def address_string(self) -> str:
        return "a Unix socket"


@contextmanager
def page_at(path: Path) -> Iterator[str]:
    """Serve a metrics page on a Unix socket until the block ends; yields its URL."""
    with socketserver.UnixStreamServer(str(path), Page) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield unix_url(path, "/metrics")
        finally:
            server.shutdown()
            serving.join()


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


def test_pages_on_unix_sockets_are_targets_at_the_control_plane(platform: Platform, api: Api) -> None:
    platform.live()
    service = InferenceService.objects.get()
    phases = {"digits-00001-0": "Ready", "digits-00001-1": "Starting", "digits-00001-2": "Draining"}
    service.observed = {
        "digits-00001": {
            "metrics_urls": ["http+unix://%2Fhome%2Fmetrics/metrics"],
            "replicas": [{"name": name, "phase": phase} for name, phase in phases.items()],
        }
    }
    service.save()
    first, second = api(Scope.READ).get(URL, headers={"host": "127.0.0.1:8080"}).json()
    assert first == {
        "targets": ["127.0.0.1:8080"],
        "labels": {
            "__scheme__": "http",
            "__metrics_path__": "/api/v1/services/default/digits/replicas/digits-00001-0/metrics",
            "instance": "digits-00001-0",
            "namespace": "default",
            "service": "digits",
            "revision": "digits-00001",
        },
    }
    assert second["labels"]["instance"] == "digits-00001-2"
    service.observed["digits-00001"]["metrics_urls"] = ["http://10.0.0.7:8002/metrics"]
    service.save()
    assert [each["targets"] for each in api(Scope.READ).get(URL).json()] == [["10.0.0.7:8002"]]
    answer = api(Scope.READ).get(URL, {"via": "control-plane"}, headers={"host": "127.0.0.1:8080"})
    assert answer.json() == [first, second], "whatever they are on"
    refused = api(Scope.READ).get(URL, {"via": "proxy"})
    assert (refused.status_code, refused.json()["error"]["field"]) == (400, "via")


def test_a_replicas_page_is_served_to_those_who_may_see_its_service(
    platform: Platform, api: Api, tmp_path: Path, settings: Settings
) -> None:
    layout = Layout(tmp_path / "cluster")
    settings.CLUSTER_FOLDER = layout.cluster
    alive = ClusterStatus(time.time(), os.getpid(), "http://127.0.0.1:1", (Component("gateway", ready=True),))
    write_json(layout.cluster_status, cluster_status_to_json(alive))
    platform.live()
    page = f"/api/v1/services/default/digits/replicas/{REPLICA}/metrics"
    absent = api(Scope.READ).get(page)
    assert (absent.status_code, absent.json()["error"]["code"]) == (404, "not_found")
    with page_at(tmp_path / "metrics") as url:
        replica = ObservedReplica(REPLICA, ReplicaPhase.READY, metrics_url=url)
        found = Observed("default", "digits", revisions=(ObservedRevision("digits-00001", 100, (replica,)),))
        write_json(layout.status_file("default", "digits"), observed_to_json(found))
        answer = api(Scope.READ).get(page, headers={"accept": "application/openmetrics-text"})
        assert (answer.status_code, answer.content) == (200, b"up 1\n")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    gone = api(Scope.READ).get(page)
    assert (gone.status_code, gone.json()["error"]["code"]) == (503, "unavailable")


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
