"""The disk of the home is full in the middle of a rollout: what serves goes on, and the rollout once there is room."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from fairlead_cli.up import processes
from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, failed, serve_digits, traffic, until

pytestmark = pytest.mark.e2e

SIZE_MB = 60
POLICY = """
name: quick
strategy: canary
steps:
  - {weight: 30, hold: 3s}
  - {weight: 60, hold: 3s}
  - {weight: 100}
scaleDownDelay: 1s
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, so small that it can be filled."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE_MB}m", "tmpfs", str(place)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no file system can be mounted here, which takes root: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def filled(disk: Path) -> Iterator[None]:
    """Fill the disk, and take again what others give back, until the end of the block."""
    stop, full = threading.Event(), threading.Event()

    def fill() -> None:
        with (disk / "filler").open("ab", buffering=0) as file:
            while not stop.is_set():
                try:
                    file.write(bytes(1 << 16))
                except OSError:
                    full.set()
                    stop.wait(0.02)

    filling = threading.Thread(target=fill)
    filling.start()
    try:
        assert full.wait(30)
        yield
    finally:
        stop.set()
        filling.join()
        (disk / "filler").unlink()


def pids(platform: Platform) -> dict[str, int]:
    """Return the processes that run, by the names of their records."""
    records = {path.stem: json.loads(path.read_text()) for path in (platform.home / "run").glob("*.json")}
    assert all(processes.is_running(each["pid"], each["start_ticks"]) for each in records.values())
    return {name: each["pid"] for name, each in records.items()}


def change(platform: Platform, number: int) -> httpx.Response:
    token = (platform.home / "token").read_text().strip()
    policy = {"name": f"p{number}", "strategy": "canary", "steps": [{"weight": 100}], "scaleDownDelay": "1s"}
    return httpx.put(
        f"{platform.url}/api/v1/policies/p{number}",
        json=policy,
        headers={"Authorization": f"Bearer {token}"},
        timeout=60,
        trust_env=False,
    )


def components(platform: Platform) -> dict[str, dict[str, Any]]:
    status = json.loads((platform.home / "cluster" / "status.json").read_text())
    return {each["name"]: each for each in status["components"]}


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
                numbers = iter(range(1000))
                refused = until(
                    lambda: (answer := change(platform, next(numbers))).status_code >= 400 and answer, 60, "a refusal"
                )
                assert isinstance(refused, httpx.Response)
                assert refused.status_code == 507, refused.text
                error = refused.json()["error"]
                assert (error["code"], error["message"]) == (
                    "no_room",
                    "FAIRLEAD_HOME/fairlead.sqlite3 cannot be written: its disk is full; nothing was changed, and what "
                    "serves goes on; make room there and try again",
                )
                pushed = platform.fairlead("models", "push", str(models / "v3.onnx"), "--name", "other", check=False)
                assert pushed.returncode == 1
                assert pushed.stderr.startswith("FAIRLEAD_HOME/"), pushed.stderr
                assert pushed.stderr.count("\n") == 1
                until(lambda: "disk" in components(platform), 30, "the agent says so")
                assert "cannot be written (No space left on device)" in components(platform)["disk"]["message"]
                sent = len(log.requests)
                until(lambda: (log.read(), len(log.requests) > sent + 600)[1], 30, "five seconds of traffic")
                assert client.get(f"rollouts/{rollout}")["phase"] == "Progressing"
            until(lambda: client.get(f"rollouts/{rollout}")["phase"] == "Healthy", 90, "the rollout's end")
            until(lambda: "disk" not in components(platform), 30, "the agent says that there is room")
            assert change(platform, 1000).status_code in (200, 201)
            after = pids(platform)
            assert {name: after.get(name) for name in before if "00001" not in name} == {
                name: pid for name, pid in before.items() if "00001" not in name
            }
            assert platform.process is not None
            assert platform.process.poll() is None
        assert failed(log) == []
        assert len(log.requests) > 1000
        assert not list((platform.home / "broker" / "queue").glob(".*.new"))
