"""Requests are recorded under traffic and answered again by other versions, on a whole platform with real runtimes."""

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.e2e._support.platforms import LONG_ON_KUBERNETES
from tests.e2e.harness import Platform, failed, serve_digits, traffic, until

pytestmark = [pytest.mark.e2e, LONG_ON_KUBERNETES]

POLICY = """
name: quick
steps: [{weight: 100}]
"""
CONSENT = "The requests are made up by this test, nobody's data are in them."
WAIT_S = 90
REQUESTS = 300


def _recorded(platform: Platform, models: Path, scratch: Path) -> None:
    """Serve version 1 and have a recording of its requests, over all the protocols that the traffic speaks."""
    serve_digits(platform, models, POLICY)
    with platform.client() as client, traffic(platform, models, scratch, "default/digits") as log:
        where = "services/default/digits/recordings"
        began = json.loads(
            platform.fairlead(
                *("recordings", "start", "digits", "--consent", CONSENT, "--max-requests", str(REQUESTS), "-o", "json")
            ).stdout
        )

        def row() -> dict[str, Any]:
            return client.get(f"{where}/{began['id']}")

        until(lambda: row()["ended_at"], WAIT_S, "the recording has its requests")
        assert (row()["requests"], row()["end_reason"]) == (
            REQUESTS,
            f"it reached its limit of {REQUESTS} requests",
        )
    assert failed(log) == []
    (file,) = (platform.home / "recordings").iterdir()
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert b"inputs" not in file.read_bytes()


def _replay(platform: Platform, version: str) -> tuple[int, dict[str, Any]]:
    """Return the exit code of `services replay --wait`, and the replay."""
    wait = ("--wait", "--timeout", str(WAIT_S), "-o", "json")
    done = platform.fairlead("services", "replay", "digits", "--version", version, *wait, check=False)
    return done.returncode, json.loads(done.stdout)


def test_the_same_version_agrees_and_a_wrong_one_is_found_out(anywhere: Platform, models: Path, tmp_path: Path) -> None:
    platform = anywhere
    _recorded(platform, models, tmp_path)
    code, same = _replay(platform, "1")
    found = same["comparison"]
    assert (code, same["status"], same["done"], same["total"]) == (0, "DONE", REQUESTS, REQUESTS)
    assert (found["pairs"], found["agreement_percent"], found["unreadable"]) == (REQUESTS, 100.0, 0)
    platform.fairlead("models", "push", str(models / "v3.onnx"), "--name", "digits", "--wait")
    code, wrong = _replay(platform, "3")
    assert (code, wrong["status"], wrong["comparison"]["measurement"]["verdict"]) == (3, "DONE", "Failed")
    assert wrong["comparison"]["agreement_percent"] < 90
    assert wrong["comparison"]["worst"]
    with platform.client() as client:
        revisions = client.get("services/default/digits")["revisions"]
        assert [revision["model_version"] for revision in revisions] == [1]  # nothing was rolled out
        client.delete(f"services/default/digits/recordings/{same['recording']}")
        until(lambda: not list((platform.home / "recordings").iterdir()), WAIT_S, "the file is deleted")
        assert client.get(f"services/default/digits/replays/{same['id']}")["recording"] is None


@pytest.mark.long
def test_a_worker_that_is_killed_in_the_middle_is_followed_by_another(
    anywhere: Platform, models: Path, tmp_path: Path
) -> None:
    platform = anywhere
    _recorded(platform, models, tmp_path)
    with platform.client() as client:
        row = client.post("services/default/digits/replays", {"version": "1"})
        where = f"services/default/digits/replays/{row['id']}"
        until(platform.candidates, WAIT_S, "the candidate runs")
        os.kill(platform.record("worker")["pid"], signal.SIGKILL)
        until(lambda: client.get(where)["status"] != "PENDING", WAIT_S, "another worker made it")
        ended = client.get(where)
    assert (ended["status"], ended["done"], ended["comparison"]["agreement_percent"]) == ("DONE", REQUESTS, 100.0)
    until(lambda: not platform.candidates(), WAIT_S, "no candidate is left")
