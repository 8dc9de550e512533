"""A shadow rollout on a whole platform under traffic: clients see nothing of it until it is promoted."""

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
name: shadow
strategy: shadow
steps:
  - weight: 50
    hold: 1s
    analysis: {minRequests: 50, maxErrorPercent: 1.0, maxSlowPercent: 90, deadline: 2m}
scaleDownDelay: 1s
"""
ALL_COPIED = """
name: all
strategy: shadow
steps:
  - {weight: 100, hold: 1h}
"""
WAIT_S = 90
HANGING = 50


def _stands_still(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_clients_are_answered_while_every_copy_hangs(anywhere: Platform, models: Path, tmp_path: Path) -> None:
    """If one answer of stable waited for its copy it would never come: the shadow's process stands still."""
    platform = anywhere
    serve_digits(platform, models, ALL_COPIED)
    with platform.client() as client, traffic(platform, models, tmp_path, "default/digits") as log:
        begun = client.post("services/default/digits/rollouts", {"version": "2"})
        shadow = begun["to_revision"]
        until(lambda: client.get(f"rollouts/{begun['id']}")["mirror_actual"] == 100, WAIT_S, "all is copied")
        process = platform.pid(shadow)
        os.kill(process, signal.SIGSTOP)
        try:
            until(lambda: platform.hanging_copies(shadow) >= HANGING, WAIT_S, "copies hang")
            log.read()
            before = len(log.requests)
            until(lambda: (log.read(), len(log.requests) >= before + HANGING)[1], WAIT_S, "clients are answered")
            assert platform.hanging_copies(shadow) >= HANGING
            assert _stands_still(process), "no copy was answered in the meantime"
        finally:
            os.kill(process, signal.SIGCONT)
        client.post(f"rollouts/{begun['id']}/abort", {})
    assert failed(log) == []
    assert {request.revision for request in log.requests} == {begun["from_revision"]}


def test_a_shadow_is_tried_on_copies_and_promoted_by_a_person(anywhere: Platform, models: Path, tmp_path: Path) -> None:
    platform = anywhere
    serve_digits(platform, models, POLICY)
    with platform.client() as client, traffic(platform, models, tmp_path, "default/digits") as log:
        begun = client.post("services/default/digits/rollouts", {"version": "2"})
        rollout = begun["id"]

        def phase() -> dict[str, Any]:
            return client.get(f"rollouts/{rollout}")

        until(lambda: phase()["phase"] == "Paused", WAIT_S, "the shadow passed its step")
        log.read()
        before = len(log.requests)
        seen = phase()
        assert (seen["weight_actual"], seen["mirror_actual"]) == (0, 50)
        assert 20 < seen["weight_seen_percent"] < 80
        assert seen["analysis_runs"][0]["requests"]["canary"] >= 50
        assert {request.revision for request in log.requests} == {begun["from_revision"]}
        platform.fairlead("rollouts", "promote", "digits")
        wait = ("--wait", "--timeout", str(WAIT_S), "-o", "json")
        done = platform.fairlead("rollouts", "status", str(rollout), *wait, check=False)
        until(lambda: (log.read(), len(log.requests) > before + 100)[1], WAIT_S, "more traffic")
    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout)
    assert (ended["phase"], ended["weight_actual"], ended["mirror_actual"]) == ("Healthy", 100, 0)
    assert failed(log) == []
    assert log.requests[-1].revision == begun["to_revision"]
