"""The process that counts usage on Kubernetes, as the chart starts it: killed, started again, and ended."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.test import override_settings
from django.utils import timezone
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from pytest_django import DjangoDbBlocker

from clusters.models import KUBERNETES, Cluster
from deployments.models import InferenceService
from integrations.otlp.logs_receiver import METHOD
from tests.servers.parts import free_port
from tests.servers.template import copy_sqlite
from usage.models import HourlyUsage

ROOT = Path(__file__).parents[2]
ALIAS, TOKEN = "collected", "t" * 32
_WITHIN_S = 120.0


@pytest.fixture
def database(tmp_path: Path, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A database of its own with a service on Kubernetes, which a process of its own can write to."""
    copy_sqlite(tmp_path / "fairlead.sqlite3")
    default = connections.databases["default"]
    engine = {"ENGINE": "django.db.backends.sqlite3", "NAME": str(tmp_path / "fairlead.sqlite3"), "OPTIONS": {}}
    connections.databases[ALIAS] = {**default, **engine}
    with django_db_blocker.unblock():
        try:
            now = timezone.now()
            place = Cluster.objects.using(ALIAS).create(name="here", kind=KUBERNETES, created_at=now)
            InferenceService.objects.using(ALIAS).create(
                cluster=place, namespace="default", name="digits", document={}, created_at=now
            )
            yield
        finally:
            connections[ALIAS].close()
            delattr(connections._connections, ALIAS)
            del connections.databases[ALIAS]


def until(look: Callable[[], object]) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def requests() -> int:
    return sum(HourlyUsage.objects.using(ALIAS).values_list("requests", flat=True))


@contextmanager
def collector(home: Path, port: int, metrics_port: int) -> Iterator[subprocess.Popen[bytes]]:
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))},
        "FAIRLEAD_HOME": str(home),
        "FAIRLEAD_SECRET_KEY": "x" * 40,
        "FAIRLEAD_USAGE_COLLECTOR_ADDRESS": f"127.0.0.1:{port}",
        "FAIRLEAD_USAGE_COLLECTOR_METRICS_ADDRESS": f"127.0.0.1:{metrics_port}",
        "FAIRLEAD_USAGE_COLLECTOR_TOKEN": TOKEN,
    }
    command = [sys.executable, str(ROOT / "manage.py"), "collect_usage"]
    with subprocess.Popen(command, env=variables) as process:
        try:
            yield process
        finally:
            process.kill()


def page(port: int) -> str:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=5, trust_env=False).text
    except httpx.TransportError:
        return ""


def send(port: int, count: int) -> None:
    said = {
        "time": timezone.now().isoformat(),
        "namespace": "default",
        "route": "digits",
        "path": "/v2/models/digits/infer",
        "status": "200",
    }
    attributes = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in said.items()]
    logs = ResourceLogs(scope_logs=[ScopeLogs(log_records=[LogRecord(attributes=attributes)] * count)])
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        message = ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()
        channel.unary_unary(METHOD)(message, metadata=[("authorization", f"Bearer {TOKEN}")], timeout=20)


@pytest.mark.usefixtures("database")
def test_counting_goes_on_after_a_kill_and_an_end_loses_nothing(tmp_path: Path) -> None:
    port, metrics_port = free_port(), free_port()
    with collector(tmp_path, port, metrics_port) as process:
        until(lambda: process.poll() is not None or "fairlead_usage_records" in page(metrics_port))
        send(port, 3)
        until(lambda: requests() == 3)
        process.kill()
    with collector(tmp_path, port, metrics_port) as process:
        until(lambda: process.poll() is not None or "fairlead_usage_records" in page(metrics_port))
        send(port, 2)
        until(lambda: requests() == 5)
        assert 'fairlead_usage_records_total{result="read"} 2.0' in page(metrics_port)
        send(port, 4)
        process.send_signal(signal.SIGTERM)
        assert process.wait(_WITHIN_S) == 0
    assert requests() == 9


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"USAGE_COLLECTOR_TOKEN": "short"}, "FAIRLEAD_USAGE_COLLECTOR_TOKEN has 5 characters, fewer than 32"),
        ({"USAGE_COLLECTOR_ADDRESS": ("192.0.2.1", 4317)}, "192.0.2.1:4317 cannot be listened on"),
    ],
)
def test_without_a_token_or_its_address_it_says_what_is_missing(wrong: dict[str, Any], sentence: str) -> None:
    with override_settings(**{"USAGE_COLLECTOR_TOKEN": TOKEN, **wrong}), pytest.raises(CommandError, match=sentence):
        call_command("collect_usage")
