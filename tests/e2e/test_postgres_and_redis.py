"""The same platform with PostgreSQL and with Redis as Celery's broker, both real, both hurt; the tests run in order."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, failed, serve_digits, traffic, until
from tests.servers.parts import MissingPartError, free_port, skip_or_fail
from tests.servers.postgres import Postgres, postgres
from tests.servers.redis import Redis, redis

pytestmark = [pytest.mark.e2e, pytest.mark.postgres, pytest.mark.redis]

POLICY = """
name: quick
strategy: canary
steps:
  - weight: 20
    hold: 5s
    analysis: {minRequests: 100, maxErrorPercent: 1.0, maxSlowPercent: 90, deadline: 2m}
scaleDownDelay: 1s
"""


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    try:
        with postgres() as server:
            yield server
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture(scope="module")
def broker() -> Iterator[Redis]:
    try:
        with redis() as server:
            yield server
    except MissingPartError as missing:
        skip_or_fail(missing)


@pytest.fixture(scope="module")
def platform(database: Postgres, broker: Redis, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    variables = {"FAIRLEAD_DATABASE_URL": database.url, "FAIRLEAD_BROKER_URL": broker.url}
    variables["FAIRLEAD_METRICS_ADDRESS"] = f"127.0.0.1:{free_port()}"
    variables["FAIRLEAD_BEAT_METRICS_ADDRESS"] = f"127.0.0.1:{free_port()}"
    with started(tmp_path_factory.mktemp("servers"), **variables) as made:
        yield made


def phase(platform: Platform) -> str:
    """Return the phase of the newest rollout, or of the service while it has none."""
    with platform.client() as client:
        seen = client.get("services/default/digits")
    return str((seen["rollout"] or seen)["phase"])


def test_a_model_is_checked_and_served(platform: Platform, models: Path) -> None:
    serve_digits(platform, models, POLICY)
    assert not (platform.home / "fairlead.sqlite3").exists()
    assert not list((platform.home / "broker" / "queue").iterdir())
    log = (platform.home / "logs" / "worker.log").read_text()
    assert re.search(r"registry.tasks \[[0-9a-f]{32}\] the check of version", log), "it has the upload's request id"


def test_the_database_goes_in_the_middle_of_a_rollout(
    platform: Platform, database: Postgres, models: Path, tmp_path: Path
) -> None:
    """Clients notice nothing, and the rollout ends Healthy once the database is back."""
    with traffic(platform, models, tmp_path, "default/digits") as log:
        platform.fairlead("rollouts", "start", "digits", "--version", "2")
        until(lambda: phase(platform) == "Progressing", 60, "the rollout's start")
        database.stop()
        until(lambda: _readiness(platform) == 503, 60, "web's notice of it")
        until(lambda: len(log.read()), 60, "requests sent")
        answered = len(log.requests)
        until(lambda: (log.read(), len(log.requests) > answered + 300)[1], 60, "answers without a database")
        database.start()
        until(lambda: _readiness(platform) == 200, 60, "web's return")
        until(lambda: phase(platform) == "Healthy", 120, "the rollout's end")
    assert failed(log) == []
    assert platform.record("worker")["restarts"] == 0


def test_the_broker_goes_and_comes_back_empty(platform: Platform, broker: Redis, models: Path) -> None:
    """What was asked for meanwhile is found by a sweep of the same worker."""
    broker.stop()
    platform.fairlead("models", "push", str(models / "v3.onnx"), "--name", "digits")
    broker.start()
    with platform.client() as client:
        until(lambda: client.get("models/digits/versions/3")["status"] == "READY", 120, "the check of version 3")
    assert platform.record("worker")["restarts"] == 0


def test_every_process_has_a_metrics_page(platform: Platform) -> None:
    web = httpx.get(f"{platform.url}/metrics", trust_env=False).text
    worker, beat = (
        httpx.get(f"http://{platform.variables[name]}/metrics", trust_env=False).text
        for name in ("FAIRLEAD_METRICS_ADDRESS", "FAIRLEAD_BEAT_METRICS_ADDRESS")
    )
    assert 'fairlead_rollouts{phase="Healthy"} 1.0' in web
    assert 'fairlead_queue_depth{queue="celery"}' in web
    assert re.search(r'fairlead_rate_limit_checks_total{store="redis"} [1-9]', web), "before and after the broker went"
    assert 'fairlead_rate_limit_checks_total{store="memory"}' in web
    assert 'fairlead_reconcile_duration_seconds_count{outcome="done"}' in worker
    assert 'fairlead_tasks_failed_total{task="deployments.tasks.sweep"}' in worker, "while the database was gone"
    assert 'fairlead_tasks_sent_total{task="deployments.tasks.sweep"}' in beat


def _readiness(platform: Platform) -> int:
    return httpx.get(f"{platform.url}/readyz", trust_env=False, timeout=30).status_code
