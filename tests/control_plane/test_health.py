"""Liveness, readiness and the metrics page, which answers without a token unless that is switched off."""

from datetime import timedelta

import httpx
import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.services import token_create, user_get_or_create
from control_plane import health
from control_plane.monitoring import telemetry
from tests.servers.parts import free_port


def test_liveness_needs_no_database(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.json()) == (200, {"live": True})


@pytest.mark.django_db
def test_readiness_is_the_databases(client: Client) -> None:
    response = client.get("/readyz")
    assert (response.status_code, response.json()) == (200, {"ready": True})


@pytest.mark.django_db(transaction=True)
def test_without_a_database_it_is_not_ready_and_says_why(client: Client) -> None:
    name = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = "no-such-folder/database"
    try:
        response = client.get("/readyz")
    finally:
        connection.close()
        connection.settings_dict["NAME"] = name
    assert response.status_code == 503
    reason = response.json()["reason"]
    assert reason.startswith("database: unable to open" if connection.vendor == "sqlite" else "database: connection to")


@pytest.mark.django_db
def test_the_metrics_page_is_prometheus_text(client: Client) -> None:
    response = client.get("/metrics")
    assert response.headers["Content-Type"].startswith("text/plain")
    assert b"process_start_time_seconds" in response.content


def test_only_reading_is_allowed(client: Client) -> None:
    assert client.post("/healthz").status_code == 405


class TestMetricsByToken:
    """`FAIRLEAD_METRICS_ACCESS=token`."""

    @pytest.fixture(autouse=True)
    def _closed(self, settings: Settings, db: None) -> None:
        settings.METRICS_ACCESS = "token"

    def test_an_anonymous_scrape_from_elsewhere_gets_401_as_the_api(self, client: Client) -> None:
        response = client.get("/metrics", REMOTE_ADDR="192.0.2.7")
        assert (response.status_code, response.json()["error"]["code"]) == (401, "not_authenticated")
        assert response.headers["WWW-Authenticate"] == 'Bearer realm="fairlead"'

    def test_a_token_that_reads_the_installation_scrapes(self, client: Client) -> None:
        headers = {"Authorization": f"Bearer {_token(default_role=Role.VIEWER)}"}
        assert client.get("/metrics", REMOTE_ADDR="192.0.2.7", headers=headers).status_code == 200

    def test_a_token_of_another_teams_member_does_not(self, client: Client) -> None:
        headers = {"Authorization": f"Bearer {_token(default_role=None)}"}
        assert client.get("/metrics", REMOTE_ADDR="192.0.2.7", headers=headers).status_code == 403

    @pytest.mark.parametrize("value", ["Bearer flt_unknown", "Basic eDp5", "Bearer", "Bearer a b"])
    def test_anything_else_does_not(self, client: Client, value: str) -> None:
        assert client.get("/metrics", REMOTE_ADDR="192.0.2.7", headers={"Authorization": value}).status_code == 401

    @pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
    def test_this_machine_needs_none(self, client: Client, address: str) -> None:
        assert client.get("/metrics", REMOTE_ADDR=address).status_code == 200

    @pytest.mark.parametrize(
        "address", ["::ffff:192.0.2.7", "64:ff9b::127.0.0.1", "2002:7f00:1::1", "::127.0.0.1", "::2", ""]
    )
    def test_another_machine_does_by_ipv6_too(self, client: Client, address: str) -> None:
        assert client.get("/metrics", REMOTE_ADDR=address).status_code == 401

    @pytest.mark.parametrize("header", ["X-Forwarded-For", "Forwarded", "Via", "X-Real-IP"])
    def test_a_proxy_on_this_machine_is_not_this_machine(self, client: Client, header: str) -> None:
        headers = {header: "127.0.0.1"}
        assert client.get("/metrics", REMOTE_ADDR="127.0.0.1", headers=headers).status_code == 401


@pytest.mark.django_db(transaction=True)
def test_the_own_port_shows_the_whole_page(settings: Settings) -> None:
    settings.METRICS_ACCESS = "token"
    port = free_port()
    telemetry.serve(("127.0.0.1", port), health.OWN_PORT)
    page = httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    for family in ("process_start_time_seconds", "fairlead_database_up", "fairlead_tasks_sent"):
        assert f"\n# TYPE {family}" in f"\n{page}"


def _token(*, default_role: Role | None) -> str:
    now = timezone.now()
    user_get_or_create(username="root", now=now)  # makes the default team
    user = user_get_or_create(username="prometheus", default_role=default_role, now=now)
    made = token_create(user=user, name="scrape", scope=Scope.READ, lifetime=timedelta(hours=1), now=now, actor="test")
    return made.secret
