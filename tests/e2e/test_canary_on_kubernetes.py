"""A canary with analysis on a whole platform whose services run on Kubernetes: nothing that is killed is noticed."""

import json
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from integrations.clusters.kubernetes.api import resource_types
from tests.cluster.plane import ControlPlane
from tests.e2e.harness import failed, serve_digits, traffic, until
from tests.e2e.kubernetes import KubernetesPlatform, on_kubernetes

pytestmark = [pytest.mark.e2e, pytest.mark.cluster]

POLICY = """
name: judged
strategy: canary
steps:
  - weight: 20
    hold: 3s
    analysis: {minRequests: 30, maxErrorPercent: 1.0, maxSlowPercent: 90, deadline: 10m}
  - weight: 100
    hold: 1s
scaleDownDelay: 1s
"""
HELD = """
name: held
strategy: canary
steps:
  - weight: 20
    hold: 1h
"""
WAIT_S = 300
OURS = {"networkpolicies", "poddisruptionbudgets", "serviceaccounts"}
"""Kinds that the driver alone reads; a turn of the workers' sweeps lists each of them."""


@pytest.fixture(scope="module")
def platform(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesPlatform]:
    with on_kubernetes(plane, tmp_path_factory.mktemp("e2e")) as running:
        yield running


def test_a_cluster_that_is_added_while_the_platform_runs_is_watched(platform: KubernetesPlatform, models: Path) -> None:
    serve_digits(platform, models, POLICY, replicas=2)
    with platform.client() as client:

        def streaming() -> bool:
            watch = client.get(f"clusters/{platform.cluster}")["watch"]
            return bool(watch and watch["total"] and watch["streaming"] == watch["total"])

        until(streaming, WAIT_S, "all watches stream")
    assert platform.record("watcher")["restarts"] == 0


def test_the_worker_killed_and_stables_pods_deleted_in_a_rollout_lose_no_request(
    platform: KubernetesPlatform, models: Path, tmp_path: Path
) -> None:
    serve_digits(platform, models, POLICY, replicas=2)
    wait = ("--wait", "--timeout", str(WAIT_S), "-o", "json")
    with traffic(platform, models, tmp_path, "default/digits", rate=60) as log, platform.client() as client:

        def row(name: str) -> dict[str, Any]:
            return next(each for each in client.get("services/default/digits")["revisions"] if each["name"] == name)

        until(lambda: row("digits-00001")["replicas_ready"] == 2, WAIT_S, "two pods")
        begun = client.post("services/default/digits/rollouts", {"version": "2"})
        until(lambda: row("digits-00002")["weight_actual"] == 20, WAIT_S, "the first step")
        killed = platform.record("worker")["pid"]
        os.kill(killed, signal.SIGKILL)
        _delete_a_pod(platform, "digits-00001")
        done = platform.fairlead("rollouts", "status", str(begun["id"]), *wait, check=False)
        assert done.returncode == 0, done.stderr
        assert platform.record("worker")["pid"] != killed
        ended = json.loads(done.stdout)
        assert (ended["phase"], ended["weight_actual"]) == ("Healthy", 100)
        run = ended["analysis_runs"][0]
        assert (run["verdict"], run["requests"]["canary"] >= 30) == ("Successful", True)
        until(lambda: (log.read(), log.requests[-1].revision == "digits-00002")[1], WAIT_S, "the new version")
        back = platform.fairlead("rollouts", "undo", "digits", *wait, check=False)
        assert back.returncode == 0, back.stderr
    assert failed(log) == [], f"of {len(log.requests)} requests"


def test_the_platform_killed_in_a_rollout_and_started_again_loses_no_request(
    platform: KubernetesPlatform, models: Path, tmp_path: Path
) -> None:
    serve_digits(platform, models, POLICY, replicas=2)
    with traffic(platform, models, tmp_path, "default/digits", rate=60) as log, platform.client() as client:
        begun = client.post("services/default/digits/rollouts", {"version": "2"})
        until(lambda: client.get(f"rollouts/{begun['id']}")["weight_actual"] == 20, WAIT_S, "the first step")
        assert platform.process is not None
        platform.process.kill()
        platform.process.wait()
        log.read()
        before = len(log.requests)
        until(lambda: (log.read(), len(log.requests) > before + 100)[1], WAIT_S, "answers while nobody watches")
        assert {request.revision for request in log.requests[before:]} == {"digits-00001", begun["to_revision"]}
        platform.start()
        wait = ("--wait", "--timeout", str(WAIT_S), "-o", "json")
        done = platform.fairlead("rollouts", "status", str(begun["id"]), *wait, check=False)
        assert done.returncode == 0, done.stderr
        assert (json.loads(done.stdout)["phase"], json.loads(done.stdout)["weight_actual"]) == ("Healthy", 100)
        until(lambda: (log.read(), log.requests[-1].revision == begun["to_revision"])[1], WAIT_S, "the new version")
    assert failed(log) == [], f"of {len(log.requests)} requests"


def test_turns_in_a_rollout_and_looks_at_rest_read_no_objects(platform: KubernetesPlatform) -> None:
    (platform.home.parent / "held.yaml").write_text(HELD)
    platform.fairlead("policies", "apply", "-f", "held.yaml")
    with platform.client() as client:
        other = 3 - client.get("services/default/digits")["model_version"]
        begun = client.post("services/default/digits/rollouts", {"version": str(other), "policy": "held"})

        def at_its_step() -> bool:
            found = client.get(f"rollouts/{begun['id']}")
            return bool(found["weight_actual"] == 20 and found["confirmed_at"])

        until(at_its_step, WAIT_S, "the held step")
        assert _lists_while(platform, lambda: _turn_age_s(platform), falls=5) == 0
        client.post(f"rollouts/{begun['id']}/abort", {})
        until(lambda: client.get(f"rollouts/{begun['id']}")["phase"] == "Aborted", WAIT_S, "the end of the rollout")
        until(lambda: platform.replicas(begun["to_revision"]) == 0, WAIT_S, "the end of its pods")
        assert _lists_while(platform, lambda: _observed_age_s(platform), falls=3) == 0


def _lists_while(platform: KubernetesPlatform, age_s: Callable[[], float], falls: int) -> int:
    """Return how many lists of the driver's kinds the API server answered until an age fell so many times."""
    before, seen, last = _lists(platform), 0, age_s()
    assert before, "its watches began with lists"

    def enough() -> bool:
        nonlocal seen, last
        now = age_s()
        seen, last = seen + (now < last), now
        return seen >= falls

    until(enough, WAIT_S, f"{falls} turns")
    return _lists(platform) - before


def _lists(platform: KubernetesPlatform) -> int:
    with platform.harness.plane.client() as client:
        page = client.get("/metrics").text
    return int(
        sum(
            sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if sample.name == "apiserver_request_total"
            and sample.labels["verb"] in ("LIST", "GET")
            and sample.labels["resource"] in OURS
        )
    )


def _turn_age_s(platform: KubernetesPlatform) -> float:
    return _gauge(platform, "fairlead_rollout_turn_age_seconds")


def _observed_age_s(platform: KubernetesPlatform) -> float:
    return _gauge(platform, "fairlead_cluster_observed_age_seconds", cluster=platform.cluster)


def _gauge(platform: KubernetesPlatform, name: str, **labels: str) -> float:
    page = httpx.get(f"{platform.url}/metrics", timeout=30, trust_env=False).text
    (found,) = (
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    )
    return found


def _delete_a_pod(platform: KubernetesPlatform, revision: str) -> None:
    with platform.harness.plane.client() as client:
        labels = {"labelSelector": f"fairlead/revision={revision}"}
        pods = client.get(resource_types.POD.path("default"), params=labels).json()["items"]
        client.delete(resource_types.POD.path("default", pods[0]["metadata"]["name"])).raise_for_status()
