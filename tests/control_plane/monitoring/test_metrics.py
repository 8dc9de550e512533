"""The metrics pages: what web reads from database and broker, what a worker counts; the documentation says the same."""

import re
import socket
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from celery import Celery
from django.db import DatabaseError, connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families
from pytest_django import Settings

from accounts.domain.roles import Owned
from accounts.models import Ownership, Team
from clusters.services import watch
from control_plane import beat
from control_plane.celery import app
from control_plane.monitoring import telemetry
from control_plane.monitoring.collector import ControlPlaneCollector
from deployments.models import AnalysisRun, InferenceService, Revision, Rollout
from deployments.services import model_copies
from deployments.turns import controller, sweep
from fleet.services.upgrades import upgrade_cancel, upgrade_pause, upgrade_start
from integrations.clusters.kubernetes.waker import waker
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
    elsewhere = (sweep.RECONCILE_DURATION, watch.WATCHES, watch.WAKES, CHECKS, collector.RECORDS, collector.STORED_AT)
    elsewhere = (*elsewhere, beat.ACTIVE, controller.CLUSTERS, controller.TURNS)
    elsewhere = (*elsewhere, waker.HELD, waker.REQUESTS, waker.STARTS, model_copies.MISSING)
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


def series(client: Client, name: str) -> list[tuple[dict[str, str], float]]:
    """Return the samples of one metric: labels and value."""
    families = text_string_to_metric_families(client.get("/metrics").content.decode())
    return [(each.labels, each.value) for family in families for each in family.samples if each.name == name]


@pytest.mark.django_db
def test_the_open_upgrade_of_the_fleet_has_series_that_end_with_it(client: Client) -> None:
    for name in ("digits", "ranker"):
        scenes.service(name)
    assert series(client, "fairlead_services_behind") == [({}, 0)]
    Revision.objects.update(template_changes="image runtime:1 -> runtime:2")
    assert series(client, "fairlead_services_behind") == [({}, 2)]
    assert not series(client, "fairlead_fleet_upgrade_services")
    said: dict[str, Any] = {"actor": "ann", "now": timezone.now()}
    upgrade = upgrade_start(cluster="", namespace="", percent=25, at_once=5, **said)
    of = {"upgrade": str(upgrade.pk)}
    assert (of | {"state": "Waiting"}, 2) in series(client, "fairlead_fleet_upgrade_services")
    assert series(client, "fairlead_fleet_upgrade_paused") == [(of, 0)]
    upgrade_pause(upgrade_id=upgrade.pk, **said)
    assert series(client, "fairlead_fleet_upgrade_paused") == [(of, 1)]
    upgrade_cancel(upgrade_id=upgrade.pk, **said)
    assert not series(client, "fairlead_fleet_upgrade_paused")


@pytest.mark.django_db
def test_a_rollout_in_progress_has_series_that_end_with_it(client: Client) -> None:
    rollout = scenes.rollout(scenes.service())
    of = {"namespace": "default", "service": "digits", "rollout": str(rollout.pk)}
    now = timezone.now()
    Rollout.objects.update(
        step_index=1,
        weight=25,
        confirmed_at=now - timedelta(seconds=40),
        reason_code="NoTraffic",
        reason_since=now - timedelta(seconds=50),
    )
    seen = {rollout.to_revision.name: {"weight": 10}}
    InferenceService.objects.update(observed=seen, ticked_at=now - timedelta(seconds=3))
    AnalysisRun.objects.all().delete()
    measured = [{**scenes.MEASUREMENT, "evidence_percent": 62.5}, {**scenes.MEASUREMENT, "metric": "p99"}]
    for step, measurements in ((0, [{**scenes.MEASUREMENT, "metric": "of-another-step"}]), (1, measured)):
        AnalysisRun.objects.create(
            rollout=rollout, attempt=1, step_index=step, weight=25, measurements=measurements, started_at=now
        )
    info = {"revision": rollout.to_revision.name, "policy": "careful", "phase": "Progressing"}
    assert series(client, "fairlead_rollout_info") == [(of | info, 1)]
    assert series(client, "fairlead_rollout_step") == [(of, 1)]
    assert series(client, "fairlead_rollout_steps") == [(of, 3)]
    assert series(client, "fairlead_rollout_weight_percent") == [
        (of | {"kind": "desired"}, 25),
        (of | {"kind": "confirmed"}, 10),
    ]
    assert series(client, "fairlead_rollout_evidence_percent") == [
        (of | {"metric": "server_errors", "verdict": "Running"}, 62.5),
        (of | {"metric": "p99", "verdict": "Running"}, 0),
    ]
    (step_s,) = series(client, "fairlead_rollout_step_seconds")
    (waits_s,) = series(client, "fairlead_rollout_waiting_seconds")
    (turn_s,) = series(client, "fairlead_rollout_turn_age_seconds")
    assert 40 <= step_s[1] < 900
    assert waits_s[0] == of | {"phase": "Progressing", "reason": "NoTraffic"}
    assert 50 <= waits_s[1] < 900
    assert 3 <= turn_s[1] < 900
    Rollout.objects.update(phase="Healthy")
    assert not re.search(r"^fairlead_rollout_(?!ends|turn_interval)", client.get("/metrics").content.decode(), re.M)


@pytest.mark.django_db
def test_a_service_with_objectives_has_them_as_series_with_the_team_that_owns_it(client: Client) -> None:
    service = scenes.service()
    assert series(client, "fairlead_service_objective_ratio") == []
    objectives = {"availability": 99.9, "latency": {"percent": 95, "withinMs": 7.5}}
    service.document["spec"]["objectives"] = objectives
    service.save()
    of = {"namespace": "default", "service": "digits", "team": "default"}
    assert series(client, "fairlead_service_objective_ratio") == [
        (of | {"objective": "availability"}, 0.999),
        (of | {"objective": "latency"}, 0.95),
    ]
    assert series(client, "fairlead_service_objective_latency_seconds") == [(of, 0.0075)]
    team = Team.objects.create(name="readers", created_at=timezone.now())
    Ownership.objects.create(team=team, kind=Owned.NAMESPACE, name="default")
    service.document["spec"]["objectives"] = {"availability": 99}
    service.save()
    of |= {"team": team.name, "objective": "availability"}
    assert series(client, "fairlead_service_objective_ratio") == [(of, 0.99)]
    assert series(client, "fairlead_service_objective_latency_seconds") == []


@pytest.mark.django_db
def test_rollouts_cost_the_page_as_many_queries_whatever_their_number(client: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as found:
            assert client.get("/metrics").status_code == 200
        return len(found)

    scenes.rollout(scenes.service())
    one = queries()
    scenes.rollout(scenes.service("letters"))
    assert len(series(client, "fairlead_rollout_info")) == 2
    assert queries() == one


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
