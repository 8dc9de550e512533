"""A model in Python on a machine that allows it: checked, served, and asked recorded requests again by a replay."""

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, until

pytestmark = pytest.mark.e2e

SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: sums}
spec:
  predictor:
    model: {modelFormat: {name: python}, storageUri: models:/sums/1}
"""
MODEL = """
from fairlead_python import FP32

def predict(numbers: FP32[3]) -> FP32[1]:
    return numbers.sum(axis=-1, keepdims=True) * FACTOR
"""
WAIT_S = 90


@pytest.fixture
def allowing(tmp_path: Path) -> Iterator[Platform]:
    with started(tmp_path, "--allow-python-models") as platform:
        yield platform


def push(platform: Platform, factor: int) -> None:
    """Push a version of `sums` and wait until it was found good."""
    folder = platform.home.parent / "sums"
    (folder / "1").mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text('backend: "python"\n')
    (folder / "1" / "model.py").write_text(MODEL.replace("FACTOR", str(factor)))
    platform.fairlead("models", "push", "sums", "--name", "sums", "--wait")


def test_it_is_served_and_recorded_requests_are_replayed(allowing: Platform) -> None:
    platform = allowing
    push(platform, 1)
    (platform.home.parent / "service.yaml").write_text(SERVICE)
    platform.fairlead("services", "apply", "-f", "service.yaml", "--wait")
    url = f"http://{platform.gateway}/serving/default/sums"
    numbers = {"name": "numbers", "datatype": "FP32", "shape": [3], "data": [1, 2, 4]}

    def asked() -> list[float]:
        answer = httpx.post(f"{url}/v2/models/sums/infer", json={"inputs": [numbers]}, timeout=30)
        assert answer.status_code == 200, answer.text
        found: list[float] = answer.json()["outputs"][0]["data"]
        return found

    assert asked() == [7.0]
    consent = ("--consent", "made up by this test", "--max-requests", "3")
    platform.fairlead("recordings", "start", "sums", *consent)
    with platform.client() as client:
        where = "services/default/sums/recordings"
        until(lambda: asked() and client.get(where)["results"][0]["ended_at"], WAIT_S, "the recording has its requests")
    push(platform, 2)
    replay = ("services", "replay", "sums", "--wait", "--timeout", str(WAIT_S), "-o", "json", "--version")
    for version, agreement_percent in (("1", 100.0), ("2", 0.0)):
        done = platform.fairlead(*replay, version, check=False)
        found = json.loads(done.stdout)
        assert (found["status"], found["comparison"]["agreement_percent"]) == ("DONE", agreement_percent)
