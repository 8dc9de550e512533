"""A shadow rollout on a whole platform under traffic: clients see nothing of it until it is promoted."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Platform, failed, serve_digits, traffic, until

pytestmark = pytest.mark.e2e

POLICY = """
name: shadow
strategy: shadow
steps:
  - weight: 50
    hold: 1s
    analysis: {minRequests: 50, maxErrorPercent: 1.0, maxSlowPercent: 90, deadline: 2m}
scaleDownDelay: 1s
"""
WAIT_S = 90


def test_a_shadow_is_tried_on_copies_and_promoted_by_a_person(platform: Platform, models: Path, tmp_path: Path) -> None:
    serve_digits(platform, models, POLICY)
    with platform.client() as client, traffic(platform, models, tmp_path, "default/digits") as log:
        rollout = client.post("services/default/digits/rollouts", {"version": "2"})["id"]

        def phase() -> dict[str, Any]:
            return client.get(f"rollouts/{rollout}")

        until(lambda: phase()["phase"] == "Paused", WAIT_S, "the shadow passed its step")
        log.read()
        before = len(log.requests)
        seen = phase()
        assert (seen["weight_actual"], seen["mirror_actual"]) == (0, 50)
        assert 20 < seen["weight_seen_percent"] < 80
        assert seen["analysis_runs"][0]["requests"]["canary"] >= 50
        assert {request.revision for request in log.requests} == {"digits-00001"}
        platform.fairlead("rollouts", "promote", "digits")
        wait = ("--wait", "--timeout", str(WAIT_S), "-o", "json")
        done = platform.fairlead("rollouts", "status", str(rollout), *wait, check=False)
        until(lambda: (log.read(), len(log.requests) > before + 100)[1], WAIT_S, "more traffic")
    assert done.returncode == 0, done.stderr
    ended = json.loads(done.stdout)
    assert (ended["phase"], ended["weight_actual"], ended["mirror_actual"]) == ("Healthy", 100, 0)
    assert failed(log) == []
    assert log.requests[-1].revision == "digits-00002"
