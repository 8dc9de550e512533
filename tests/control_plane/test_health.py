"""Liveness, readiness and the metrics page answer without a token."""

import pytest
from django.db import connection
from django.test import Client


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
