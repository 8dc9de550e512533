"""The process that watches clusters, as `fairlead up` and an operator start it."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
from django.core.management import call_command
from django.utils import timezone

from clusters.models import Cluster
from tests.servers.parts import free_port
from tests.servers.template import copy_sqlite

ROOT = Path(__file__).parents[2]
_WITHIN_S = 180.0


@pytest.mark.django_db
def test_it_says_whether_there_is_a_cluster_to_watch() -> None:
    def said() -> str:
        out = io.StringIO()
        call_command("watch_clusters", "--check", stdout=out)
        return out.getvalue().strip()

    assert said() == "no"
    Cluster.objects.create(name="production", kind="kubernetes", created_at=timezone.now())
    assert said() == "yes"


def test_it_serves_its_metrics_and_ends_when_it_is_told(tmp_path: Path) -> None:
    port = free_port()
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))},
        "FAIRLEAD_HOME": str(tmp_path),
        "FAIRLEAD_SECRET_KEY": "x" * 40,
        "FAIRLEAD_WATCHER_METRICS_ADDRESS": f"127.0.0.1:{port}",
    }
    command = [sys.executable, str(ROOT / "manage.py")]
    copy_sqlite(tmp_path / "fairlead.sqlite3")
    with subprocess.Popen([*command, "watch_clusters"], env=variables) as process:
        try:
            deadline = time.monotonic() + _WITHIN_S
            while "fairlead_watch_wakes" not in _page(port):
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.1)
            process.send_signal(signal.SIGTERM)
            assert process.wait(_WITHIN_S) == 0
        finally:
            process.kill()


def _page(port: int) -> str:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/metrics", timeout=5, trust_env=False).text
    except httpx.TransportError:
        return ""
