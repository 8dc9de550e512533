"""The metrics pages: what web reads from database and broker, what a worker counts; the documentation says the same."""

import socket
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from celery import Celery
from django.db import DatabaseError, connection
from django.test import Client
from django.utils import timezone
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from clusters.services import watch
from control_plane.celery import app
from control_plane.monitoring import telemetry
from control_plane.monitoring.collector import ControlPlaneCollector
from deployments import tasks
from deployments.models import InferenceService
from integrations.shared_buckets import CHECKS
from tests import scenes
from tests.servers.parts import free_port
from usage.services import collector

ROOT = Path(__file__).resolve().parents[3]


def page(text: str) -> dict[tuple[str, str], float]:
    """Return the samples without buckets: (name, the one label's value or nothing) -> value."""
    families = text_string_to_metric_families(text)
    samples = (sample for family in families for sample in family.samples if "le" not in sample.labels)
    return {(sample.name, next(iter(sample.labels.values()), "")): sample.value for sample in samples}


def test_the_table_names_exactly_the_metrics_there_are() -> None:
    own = {family.name for family in REGISTRY.collect() if family.name.startswith("fairlead_")}
    elsewhere = (tasks.RECONCILE_DURATION, watch.WATCHES, watch.WAKES, CHECKS, collector.RECORDS, collector.STORED_AT)
    own |= {family.name for metric in elsewhere for family in metric.collect()}
    own |= {family.name for family in ControlPlaneCollector().describe()}
    lines = (ROOT / "docs" / "reference" / "metrics.md").read_text().splitlines()
    assert {line.split("`")[1] for line in lines if line.startswith("| `fairlead_")} == own


@pytest.mark.django_db
def test_web_tells_services_and_rollouts_by_phase_and_how_far_the_sweep_is_behind(client: Client) -> None:
    scenes.rollout(scenes.service())
    InferenceService.objects.update(ticked_at=timezone.now() - timedelta(seconds=90))
    seen = page(client.get("/metrics").content.decode())
    assert seen["fairlead_database_up", ""] == 1
    assert seen["fairlead_services", "Progressing"] == 1
    assert seen["fairlead_services", "Degraded"] == 0
    assert seen["fairlead_rollouts", "Progressing"] == 1
    assert 90 <= seen["fairlead_sweep_lag_seconds", ""] < 900


@pytest.mark.django_db
def test_tasks_that_wait_are_counted(client: Client, settings: Settings) -> None:
    for name in ("queue", "control"):
        (Path(settings.HOME) / "broker" / name).mkdir(parents=True, exist_ok=True)
    before = page(client.get("/metrics").content.decode())["fairlead_queue_depth", "celery"]
    app.send_task("deployments.tasks.reconcile", args=[1])
    seen = page(client.get("/metrics").content.decode())
    assert seen["fairlead_queue_depth", "celery"] == before + 1
    assert seen["fairlead_tasks_sent_total", "deployments.tasks.reconcile"] >= 1


@pytest.mark.django_db
def test_without_a_database_the_page_still_answers_and_says_so(client: Client) -> None:
    def refuse(*_: object) -> None:
        raise DatabaseError("gone")

    with connection.execute_wrapper(refuse):
        seen = page(client.get("/metrics").content.decode())
    assert seen["fairlead_database_up", ""] == 0
    assert not [name for name, _ in seen if name.startswith(("fairlead_services", "fairlead_sweep"))]


def test_a_task_is_timed_and_its_failure_counted() -> None:
    celery = Celery("metrics-test", broker="memory://", set_as_current=False)

    @celery.task(name="fails")
    def fails() -> None:
        raise ValueError("on purpose")

    fails.apply()
    assert REGISTRY.get_sample_value("fairlead_tasks_failed_total", {"task": "fails"}) == 1
    assert REGISTRY.get_sample_value("fairlead_task_duration_seconds_count", {"task": "fails"}) == 1


def test_a_worker_serves_its_metrics_where_it_is_told_to(caplog: pytest.LogCaptureFixture) -> None:
    port = free_port()
    telemetry.serve(("127.0.0.1", port))
    assert "process_start_time_seconds" in httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        telemetry.serve(taken.getsockname())
    assert "metrics cannot be served on 127.0.0.1" in caplog.text
