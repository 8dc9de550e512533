"""A blue/green rollout on a whole platform under traffic: preview, one switch, and the way back."""

import json
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.e2e.harness import Platform, failed, serve_digits, traffic, until

pytestmark = pytest.mark.e2e

POLICY = """
name: switch
strategy: blueGreen
steps:
  - hold: 1s
    analysis: {minRequests: 30, maxErrorPercent: 1.0, maxSlowPercent: null, deadline: 2m}
scaleDownDelay: 1h
"""
WAIT_S = 120


def _previewed(service: dict[str, Any], images: "np.ndarray[Any, Any]") -> list[tuple[int, str]]:
    """Ask the preview address once for each image; return statuses and revisions."""
    answers = []
    with httpx.Client(timeout=20, trust_env=False) as http:
        for image in images:
            tensor = {"name": "pixels", "datatype": "FP32", "shape": [1, 64], "data": image.tolist()}
            answer = http.post(f"{service['preview_url']}/infer", json={"inputs": [tensor]})
            answers.append((answer.status_code, answer.headers.get("fairlead-revision", "")))
    return answers


def test_preview_switch_and_the_way_back(anywhere: Platform, models: Path, tmp_path: Path) -> None:
    platform = anywhere
    serve_digits(platform, models, POLICY)
    images = np.load(models / "held-out.npz")["images"].astype(np.float32)[:60]
    wait = ("--wait", "--timeout", str(WAIT_S), "-o", "json")
    with platform.client() as client:

        def service() -> dict[str, Any]:
            return client.get("services/default/digits")

        with traffic(platform, models, tmp_path, "default/digits") as log:
            rollout = client.post("services/default/digits/rollouts", {"version": "2"})["id"]
            until(lambda: client.get(f"rollouts/{rollout}")["reason"]["code"] == "NoTraffic", WAIT_S, "the preview")
            assert set(_previewed(service(), images)) == {(200, "digits-00002")}
            log.read()
            assert {request.revision for request in log.requests} == {"digits-00001"}, "clients saw nothing of it"
            done = platform.fairlead("rollouts", "status", str(rollout), *wait, check=False)
            assert done.returncode == 0, done.stderr
            decided_on = json.loads(done.stdout)["analysis_runs"][0]["requests"]["canary"]
            assert 30 <= decided_on <= 60, "at the least asked for, perhaps while the others were on their way"
            until(lambda: (log.read(), log.requests[-1].revision == "digits-00002")[1], WAIT_S, "the switch")
            assert service()["preview_url"] is None

            before = {each["name"]: each["replicas_ready"] for each in service()["revisions"]}
            assert before == {"digits-00001": 1, "digits-00002": 1}, "the old one is kept warm"
            back = platform.fairlead("rollouts", "undo", "digits", *wait, check=False)
            assert back.returncode == 0, back.stderr
            until(lambda: (log.read(), log.requests[-1].revision == "digits-00001")[1], WAIT_S, "the way back")
    assert failed(log) == []
    revisions = [request.revision for request in sorted(log.requests, key=lambda request: request.at)]
    changes = [new for old, new in zip(["", *revisions], revisions, strict=False) if new != old]
    assert changes[0] == changes[-1] == "digits-00001"
