"""Model pools on a whole platform: services without replicas, a canary in a pool, and what a pool cannot do."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e._support.platforms import started
from tests.e2e._support.services import apply, ask, asking
from tests.e2e.harness import Platform, until
from tests.integrations._support.runtimes import model

pytestmark = pytest.mark.e2e

POLICY = """
name: careful
strategy: canary
steps:
  - weight: 50
    analysis: {minRequests: 20, maxSlowPercent: 90, deadline: 2m}
scaleDownDelay: 1s
"""
COPIED = """
name: copied
strategy: shadow
then: promote
steps:
  - weight: 100
    analysis: {minRequests: 20, maxErrorPercent: 1, maxSlowPercent: 90, deadline: 2m}
scaleDownDelay: 1s
"""
TRAINED_MODEL = """
apiVersion: serving.kserve.io/v1alpha1
kind: TrainedModel
metadata: {name: linear-3}
spec:
  inferenceService: warm
  model: {framework: onnx, storageUri: "models:/linear/1", memory: 64Mi}
"""
WAIT_S = 120


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Platform]:
    with started(tmp_path, FAIRLEAD_DEFAULT_MODEL_POOL="default/warm") as running:
        yield running


def predictor(version: int) -> dict[str, Any]:
    return {"model": {"modelFormat": {"name": "onnx"}, "storageUri": f"models:/linear/{version}"}}


def in_pool(version: int) -> dict[str, Any]:
    return {"pool": "warm", **predictor(version)}


def pool_pids(platform: Platform) -> set[int]:
    """Return the processes of the pool's two replicas."""
    running = (platform.running(f"default.warm-00001-{number}") for number in range(2))
    return {int(each["pid"]) for each in running if each is not None}


def test_services_share_the_replicas_of_a_pool(platform: Platform) -> None:
    folder = platform.home.parent
    for policy in (POLICY, COPIED):
        (folder / "policy.yaml").write_text(policy)
        platform.fairlead("policies", "apply", "-f", "policy.yaml")
    for factor in (2, 3):
        (folder / "model.onnx").write_bytes(model(factor))
        platform.fairlead("models", "push", "model.onnx", "--name", "linear", "--wait")
    apply(platform, "warm", "--wait", predictor={"minReplicas": 2, "modelPool": {"memoryBudget": "256Mi"}})
    names = [f"linear-{number}" for number in range(4)]
    (folder / "trained.yaml").write_text(TRAINED_MODEL)
    platform.fairlead("services", "apply", "-f", "trained.yaml", "--wait")
    for name in names[:-1]:
        apply(platform, name, "--wait", predictor=in_pool(1), rollout={"policy": "careful"})
    assert [ask(platform, name)["outputs"][0]["data"] for name in names] == [[2, 4, 6, 8]] * len(names)
    running = pool_pids(platform)
    assert len(running) == 2

    with platform.client() as client, asking(platform, names[0]) as seen, asking(platform, names[1]) as others:
        until(lambda: len(seen) > 20, WAIT_S, "version 1 answers")
        apply(platform, names[0], predictor=in_pool(2), rollout={"policy": "careful"})

        assert ended(platform, names[0]) == "Healthy"
        sent = len(seen)
        until(lambda: len(seen) > sent + 20, WAIT_S, "version 2 answers")
        shown = client.get(f"services/default/{names[0]}")
        assert [each["pool"] for each in shown["revisions"]] == ["default/warm"] * 2
    assert {status for status, _, _ in (*seen, *others)} == {200}, [each for each in seen if each[0] != 200][:3]
    assert {revision: numbers for _, revision, numbers in seen} == {
        "linear-0-00001": [2, 4, 6, 8],
        "linear-0-00002": [3, 6, 9, 12],
    }
    assert {revision for _, revision, _ in others} == {"linear-1-00001"}, "other models are untouched"

    with asking(platform, names[2]) as copied:
        until(lambda: len(copied) > 20, WAIT_S, "version 1 answers")
        apply(platform, names[2], predictor=in_pool(2), rollout={"policy": "copied"})
        assert ended(platform, names[2]) == "Healthy"
        sent = len(copied)
        until(lambda: len(copied) > sent + 20, WAIT_S, "version 2 answers")
    assert {status for status, _, _ in copied} == {200}
    first_of_2 = next(at for at, (_, revision, _) in enumerate(copied) if revision == "linear-2-00002")
    assert {revision for _, revision, _ in copied[:first_of_2]} == {"linear-2-00001"}, "copies reach no client"
    assert pool_pids(platform) == running, "no replica was started or ended for a rollout"

    shown = platform.fairlead("pools", "show", "warm").stdout
    assert "services" in shown
    assert "warm-00001-1" in shown
    refused = platform.fairlead("services", "delete", "warm", check=False).stderr
    assert "model pool default/warm serves default/linear-3, default/linear-0, default/linear-1 and more" in refused

    for pid in running:
        os.kill(pid, signal.SIGKILL)
    until(lambda: len(now := pool_pids(platform)) == 2 and not now & running, WAIT_S, "other replicas run")
    until(lambda: ask_all(platform, names), WAIT_S, "all services answer again")


def ended(platform: Platform, service: str) -> str:
    """Return the phase in which the newest rollout of a service ends."""
    with platform.client() as client:

        def phase() -> str:
            return str(client.get(f"services/default/{service}/rollouts")["results"][0]["phase"])

        until(lambda: phase() in ("Healthy", "Degraded", "Aborted"), WAIT_S, "the rollout ends")
        return phase()


def ask_all(platform: Platform, names: list[str]) -> bool:
    try:
        return [ask(platform, name)["outputs"][0]["data"][0] for name in names] == [3, 2, 3, 2]
    except AssertionError:
        return False


def test_load_brings_own_replicas_to_a_service_in_the_default_pool_and_quiet_ends_them(platform: Platform) -> None:
    folder = platform.home.parent
    (folder / "model.onnx").write_bytes(model(2))
    platform.fairlead("models", "push", "model.onnx", "--name", "linear", "--wait")
    apply(platform, "warm", "--wait", predictor={"modelPool": {"memoryBudget": "256Mi"}})
    behavior = {"scaleUp": {"stabilizationWindowSeconds": 5}, "scaleDown": {"stabilizationWindowSeconds": 10}}
    scaling = {"minReplicas": 0, "maxReplicas": 2, "scaleMetric": "rps", "scaleTarget": 1}
    apply(platform, "busy", "--wait", predictor={**predictor(1), **scaling, "autoScaling": {"behavior": behavior}})

    def own() -> bool:
        return platform.running("default.busy-00001-0") is not None

    with platform.client() as client:

        def reason() -> str:
            return str(client.get("services/default/busy")["reason"])

        until(lambda: "no replicas of its own until its load earns them" in reason(), WAIT_S, "the pool answers")
        with asking(platform, "busy") as seen:
            until(lambda: "of its own, not its pool" in reason() and own(), WAIT_S, "its own answer")
            sent = len(seen)
            until(lambda: len(seen) > sent + 20, WAIT_S, "its own go on")
        until(lambda: "until its load earns them" in reason(), WAIT_S, "it is quiet")
        with asking(platform, "busy") as again:
            until(lambda: len(again) > 5, WAIT_S, "the pool answers again")
    assert {status for status, _, _ in (*seen, *again)} == {200}
