"""The disk of the home is full in the middle of a rollout: what serves goes on, and the rollout once there is room."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead_cli.up import processes
from tests._support.small_disk import filled, small_disk
from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, failed, serve_digits, traffic, until

pytestmark = pytest.mark.e2e

POLICY = """
name: quick
strategy: canary
steps:
  - {weight: 30, hold: 3s}
  - {weight: 60, hold: 3s}
  - {weight: 100}
scaleDownDelay: 1s
"""
STALE_S = 10.0
"""An agent that has not been heard of for so long counts as gone."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "disk", 60 << 10) as place:
        yield place


def pids(platform: Platform) -> dict[str, int]:
    """Return the processes that run, by the names of their records."""
    records = {path.stem: json.loads(path.read_text()) for path in (platform.home / "run").glob("*.json")}
    assert all(processes.is_running(each["pid"], each["start_ticks"]) for each in records.values())
    return {name: each["pid"] for name, each in records.items()}


def changed(platform: Platform, number: int) -> httpx.Response:
    """Make a policy, and return the answer."""
    token = (platform.home / "token").read_text().strip()
    policy = {"name": f"p{number}", "strategy": "canary", "steps": [{"weight": 100}], "scaleDownDelay": "1s"}
    return httpx.put(
        f"{platform.url}/api/v1/policies/p{number}",
        json=policy,
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
        trust_env=False,
    )


def refused(platform: Platform) -> httpx.Response:
    """Make policies until one is refused: SQLite's log may still have room of its own."""
    for number in range(200):
        if (answer := changed(platform, number)).status_code >= 400:
            return answer
    raise AssertionError("no change was refused")


def agent(platform: Platform) -> dict[str, Any]:
    status: dict[str, Any] = json.loads((platform.home / "cluster" / "status.json").read_text())
    return status


def disk_message(platform: Platform) -> str:
    """Return what the agent says of the disk."""
    return str(next((each["message"] for each in agent(platform)["components"] if each["name"] == "disk"), ""))


def test_a_full_disk_ends_nothing_and_a_rollout_goes_on_when_there_is_room(
    disk: Path, models: Path, tmp_path: Path
) -> None:
    with started(disk, "--log-requests") as platform:
        serve_digits(platform, models, POLICY)
        with platform.client() as client, traffic(platform, models, tmp_path, "default/digits") as log:
            rollout = client.post("services/default/digits/rollouts", {"version": "2"})["id"]
            until(lambda: client.get(f"rollouts/{rollout}")["weight_actual"] == 30, 60, "a weight of 30 %")
            before = pids(platform)
            with filled(disk):
                began = time.time()
                refusal = refused(platform)
                assert refusal.status_code == 507, refusal.text
                assert refusal.json()["error"]["code"] == "no_room"
                assert refusal.json()["error"]["message"] == (
                    "the disk is full: FAIRLEAD_HOME/fairlead.sqlite3 cannot be written; nothing was changed and what "
                    "serves goes on; make room there and try again"
                )
                pushed = platform.fairlead("models", "push", str(models / "v3.onnx"), "--name", "other", check=False)
                assert pushed.returncode == 1
                assert pushed.stderr.startswith("the disk is full: FAIRLEAD_HOME/"), pushed.stderr
                assert pushed.stderr.count("\n") == 1
                until(lambda: disk_message(platform), 30, "the agent says so")
                checked = platform.fairlead("clusters", "check", "local", check=False).stdout
                assert "make room on that disk" in checked, checked
                assert "cannot be written (No space left on device)" in disk_message(platform)
                until(lambda: agent(platform)["heartbeat_at"] > began + STALE_S + 1, 60, "heartbeats go on")
                assert client.get(f"rollouts/{rollout}")["phase"] == "Progressing"
                assert pids(platform) == before
            until(lambda: client.get(f"rollouts/{rollout}")["phase"] == "Healthy", 90, "the rollout's end")
            until(lambda: not disk_message(platform), 30, "the agent says that there is room")
            assert changed(platform, 200).is_success
            after = pids(platform)
        assert failed(log) == []
        assert len(log.requests) > 1000
        assert after.items() >= {name: pid for name, pid in before.items() if "digits-00001" not in name}.items()
        assert not list((platform.home / "broker" / "queue").glob(".*.new"))
