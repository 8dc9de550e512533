"""A real Prometheus finds the replicas by itself, and what it says of them lets one version through and another not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.harness import Platform, failed, serve_digits, traffic
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.servers.prometheus import Discovery, prometheus

pytestmark = pytest.mark.e2e

# Errors of the gateway decide nothing here: what fails the bad version is what its own replicas counted.
POLICY = """
name: measured
steps:
  - weight: 50
    analysis:
      minRequests: 20
      maxErrorPercent: 100
      maxErrorIncreasePercent: null
      maxSlowPercent: null
      deadline: 5m
      metrics:
        - name: failed-executions
          query: |
            sum(rate(nv_inference_request_failure{namespace="{{namespace}}",revision="{{revision}}"}[{{interval}}]))
            / sum(rate(nv_inference_request_success{service="{{service}}",version="{{version}}"}[{{interval}}]))
          max: 0.02
          interval: 4s
onInconclusive: abort
scaleDownDelay: 1s
"""
WAIT_S = 240


def roll_out(platform: Platform, version: int) -> dict[str, Any]:
    """Return the rollout at its end."""
    options = ("--version", str(version), "--wait", "--timeout", str(WAIT_S), "-o", "json")
    done = platform.fairlead("rollouts", "start", "digits", *options, check=False)
    ended: dict[str, Any] = json.loads(done.stdout)
    return ended


def test_what_prometheus_says_gates_a_rollout(tmp_path: Path, models: Path) -> None:
    platform = Platform(tmp_path / "home" / ".fairlead")
    discovery = Discovery(f"{platform.url}/api/v1/prometheus/targets?via=control-plane", platform.home / "token")
    try:
        with prometheus([], tmp_path, discovery=discovery) as scraper:
            platform.variables["FAIRLEAD_PROMETHEUS_URL"] = f"http://127.0.0.1:{scraper.port}"
            try:
                platform.start()
                serve_digits(platform, models, POLICY)
                platform.fairlead("models", "push", str(models / "v3.onnx"), "--name", "digits", "--wait")
                with traffic(platform, models, tmp_path, "default/digits") as log:
                    good = roll_out(platform, 2)
                    assert failed(log) == []
                    bad = roll_out(platform, 3)
            finally:
                platform.stop()
    except MissingPartError as missing:
        skip_or_fail(missing)
    assert good["phase"] == "Healthy", good["reason"]
    measured = {each["metric"]: each for each in good["analysis_runs"][0]["measurements"]}["failed-executions"]
    assert (measured["verdict"], measured["canary"], measured["stable"]) == ("Successful", 0.0, 0.0)
    assert bad["phase"] == "Degraded"
    assert "failed-executions of the canary was above 0.02 in " in bad["reason"]["message"]
