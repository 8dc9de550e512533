"""Shadows whose answers are compared, on a whole platform under traffic: alike, a little different, and wrong."""

import itertools
import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import onnx
import pytest
import yaml
from onnx import numpy_helper

from tests.e2e._support.platforms import LONG_ON_KUBERNETES
from tests.e2e.harness import SERVICE, Platform, until

pytestmark = [pytest.mark.e2e, LONG_ON_KUBERNETES]

WAIT_S = 110
GATE: dict[str, Any] = {"minRequests": 30, "maxSlowPercent": None, "deadline": "10m"}
ALIKE = {"minPairs": 60, "minAgreementPercent": 99, "topK": 1}
SIMILAR = ALIKE | {"minAgreementPercent": 90, "tolerances": {"label": None, "probabilities": {"abs": 0.1}}}


def shadow(name: str, comparison: dict[str, Any]) -> dict[str, Any]:
    step = {"weight": 100, "analysis": GATE | {"comparison": comparison}}
    return {"name": name, "strategy": "shadow", "then": "end", "scaleDownDelay": "1s", "steps": [step]}


SHADOW_THEN_CANARY: dict[str, Any] = {
    "name": "both",
    "strategy": "canary",
    "scaleDownDelay": "1s",
    "steps": [
        {"mirror": 50, "analysis": GATE | {"comparison": ALIKE}},
        {"weight": 50, "analysis": GATE},
    ],
}


def changed(model: Path, to: Path, *, quantised: bool = False, wrong: bool = False) -> Path:
    """Write a model whose weights have fewer digits, or mean something else; or one that only its words tell apart."""
    graph = onnx.load(model)
    graph.doc_string = to.stem
    for weights in graph.graph.initializer:
        values = numpy_helper.to_array(weights)
        if values.dtype == np.float32 and values.ndim == 2:
            values = values.astype(np.float16).astype(np.float32) if quantised else -values if wrong else values
            weights.CopyFrom(numpy_helper.from_array(values, weights.name))
    onnx.save(graph, to)
    return to


class Clients:
    """One client after the other, who ask for all outputs.

    Attributes:
        seen: what each got: status, revision, best class.
        lost: why others got no answer.
    """

    def __init__(self, platform: Platform, images: np.ndarray[Any, Any]) -> None:
        self.seen: list[tuple[int, str, int]] = []
        self.lost: list[str] = []
        self._url = f"http://{platform.gateway}/serving/default/digits/v2/models/digits/infer"
        self._images = images
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._ask)

    def __enter__(self) -> "Clients":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _ask(self) -> None:
        with httpx.Client(timeout=30, trust_env=False) as client:
            for number in itertools.count():
                image = self._images[number % len(self._images)].reshape(1, 64).astype(float)
                pixels = {"name": "pixels", "datatype": "FP32", "shape": [1, 64], "data": image.tolist()}
                try:
                    answer = client.post(self._url, json={"inputs": [pixels]})
                except httpx.HTTPError as error:
                    self.lost.append(f"{datetime.now(UTC):%T.%f}: {error!r}")
                else:
                    outputs = {each["name"]: each["data"] for each in answer.json().get("outputs", [])}
                    best = int(np.argmax(outputs["probabilities"])) if answer.is_success else -1
                    self.seen.append((answer.status_code, answer.headers.get("fairlead-revision", ""), best))
                if self._ended.wait(0.02):
                    return


@pytest.fixture
def digits(anywhere: Platform, models: Path, tmp_path: Path) -> Platform:
    """A service of version 1, with version 2 alike, 3 quantised and 4 wrong, and policies for them."""
    platform = anywhere
    model = models / "v2.onnx"
    made = [
        model,
        changed(model, tmp_path / "alike.onnx"),
        changed(model, tmp_path / "quantised.onnx", quantised=True),
        changed(model, tmp_path / "wrong.onnx", wrong=True),
    ]
    for path in made:
        platform.fairlead("models", "push", str(path), "--name", "digits", "--wait")
    for policy in (shadow("alike", ALIKE), shadow("similar", SIMILAR), SHADOW_THEN_CANARY):
        file = tmp_path / "policy.yaml"
        file.write_text(yaml.safe_dump(policy))
        platform.fairlead("policies", "apply", "-f", str(file))
    (tmp_path / "service.yaml").write_text(SERVICE.format(policy="alike", replicas=1, cluster=platform.cluster))
    platform.fairlead("services", "apply", "-f", str(tmp_path / "service.yaml"), "--wait")
    return platform


def test_answers_are_compared_before_any_client_sees_one(digits: Platform, models: Path) -> None:
    def rolled_out(version: int, policy: str) -> tuple[int, dict[str, Any], dict[str, Any]]:
        which = ("--version", str(version), "--policy", policy)
        wait = ("--wait", "--timeout", str(WAIT_S), "-o", "json")
        done = digits.fairlead("rollouts", "start", "digits", *which, *wait, check=False)
        [step] = json.loads(digits.fairlead("rollouts", "comparison", "digits", "-o", "json").stdout)["steps"]
        assert done.stdout, f"exit code {done.returncode}: {done.stderr}"
        return done.returncode, json.loads(done.stdout), step

    with Clients(digits, np.load(models / "held-out.npz")["images"]) as clients:
        code, _, step = rolled_out(2, "alike")
        assert (code, step["agreement_percent"]) == (0, 100.0), step["worst"][:1]
        assert step["pairs"] >= 60
        assert {output["name"]: [*output["kinds"]] for output in step["outputs"]} == {
            "label": ["Equal"],
            "probabilities": ["Equal"],
        }
        assert step["worst"] == []

        code, _, step = rolled_out(3, "similar")
        assert code == 0, step["measurement"]
        [probabilities] = step["outputs"]
        assert probabilities["name"] == "probabilities"
        assert 0 < probabilities["absolute"]["largest"] < 0.1
        assert probabilities["absolute"]["zeros"] < step["rows"]
        assert step["worst"][0]["stable"] != step["worst"][0]["shadow"]

        code, rollout, step = rolled_out(4, "alike")
        assert (code, rollout["phase"], rollout["reason"]["code"]) == (3, "Degraded", "AnalysisFailed")
        assert "answers agree with stable's in" in rollout["reason"]["message"]
        assert step["measurement"]["verdict"] == "Failed"
        assert step["high_percent"] < 99
        assert {revision for _, revision, _ in clients.seen} == {rollout["from_revision"]}

        code, rollout, step = rolled_out(2, "both")
        assert code == 0, rollout["reason"]
        assert (step["step_index"], step["agreement_percent"]) == (0, 100.0)
        assert [run["verdict"] for run in rollout["analysis_runs"]] == ["Successful", "Successful"]
        until(lambda: clients.seen[-1][1] == rollout["to_revision"], WAIT_S, "it is live")
    assert ({status for status, *_ in clients.seen}, clients.lost) == ({200}, [])
