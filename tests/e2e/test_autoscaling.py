"""Replicas follow the load and are restarted, on a whole platform under traffic, without a failed request."""

import http.client
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pytest

from tests.e2e._support.platforms import started
from tests.e2e.harness import Platform, until
from tests.e2e.kubernetes import on_kubernetes
from tests.integrations._support.runtimes import model, slow_model

pytestmark = pytest.mark.e2e

SERVICE = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: slow
spec:
  cluster: {cluster}
  predictor:
    minReplicas: 1
    maxReplicas: 3
    scaleMetric: concurrency
    scaleTarget: 4
    model:
      modelFormat: {{name: onnx}}
      storageUri: models:/slow/1
"""
MANY, FEW = 12, 3
WAIT_S = 300


@dataclass
class Clients:
    """Clients that each send one request after the other; only the first `active` of them go on."""

    address: str
    active: int
    answers: list[int | str] = field(default_factory=list)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._send, args=(number,)) for number in range(self.active)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.active = 0
        for thread in self._threads:
            thread.join()

    def _send(self, number: int) -> None:
        connection = http.client.HTTPConnection(self.address, timeout=60)
        tensor = {"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}
        body = json.dumps({"inputs": [tensor]})
        while number < self.active:
            try:
                connection.request("POST", "/serving/default/slow/v2/models/slow/infer", body)
                answer = connection.getresponse()
                said = answer.read()
                self.answers.append(200 if answer.status == 200 else said.decode())
            except (OSError, http.client.HTTPException) as error:
                self.answers.append(repr(error))
        connection.close()


@pytest.fixture(params=["local", pytest.param("kubernetes", marks=[pytest.mark.cluster, pytest.mark.long])])
def platform(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Platform]:
    """A platform that stops replicas after a few seconds in which fewer were enough."""
    window = {"FAIRLEAD_SCALE_DOWN_WINDOW_S": "3"}
    if request.param == "kubernetes":
        with on_kubernetes(request.getfixturevalue("plane"), tmp_path, **window) as running:
            yield running
        return
    with started(tmp_path, **window) as running:
        yield running


def test_replicas_follow_the_load_up_and_down_and_no_request_fails(platform: Platform) -> None:
    folder = platform.home.parent
    (folder / "service.yaml").write_text(SERVICE.format(cluster=platform.cluster))
    (folder / "slow.onnx").write_bytes(slow_model())
    platform.fairlead("models", "push", "slow.onnx", "--name", "slow", "--wait")
    platform.fairlead("services", "apply", "-f", "service.yaml", "--wait", "--timeout", str(WAIT_S))
    with platform.client() as client, Clients(platform.gateway, MANY) as clients:

        def has(wanted: int) -> bool:
            [revision] = client.get("services/default/slow")["revisions"]
            return bool((revision["replicas_wanted"], revision["replicas_ready"]) == (wanted, wanted))

        until(lambda: has(3), WAIT_S, "twelve requests in flight get three replicas")
        platform.fairlead("services", "restart", "slow", "--wait", "--timeout", str(WAIT_S))
        clients.active = FEW
        until(lambda: has(1), WAIT_S, "three requests in flight get one replica")
        until(lambda: platform.replicas("slow-00001") == 1, WAIT_S, "the others have ended")
        events: list[dict[str, Any]] = client.all("services/default/slow/events")
    assert [answer for answer in clients.answers if answer != 200] == []
    scaled = [event["message"] for event in reversed(events) if event["kind"] == "RevisionScaled"]
    assert scaled[0].startswith("Scaled from 1 to ")
    assert scaled[0].endswith(" requests in flight per replica, target 4")
    assert scaled[-1].split(":")[0].endswith(" to 1")


SLEEPER = """
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata:
  name: slow
spec:
  predictor:
    minReplicas: 0
    autoScaling: {behavior: {scaleDown: {stabilizationWindowSeconds: 10}}}
    model:
      modelFormat: {name: onnx}
      storageUri: models:/slow/1
"""


def test_a_quiet_service_sleeps_and_its_next_request_is_answered(tmp_path: Path) -> None:
    with started(tmp_path) as platform:
        folder = platform.home.parent
        (folder / "service.yaml").write_text(SLEEPER)
        (folder / "slow.onnx").write_bytes(model(2))
        platform.fairlead("models", "push", "slow.onnx", "--name", "slow", "--wait")
        platform.fairlead("services", "apply", "-f", "service.yaml", "--wait", "--timeout", str(WAIT_S))
        with platform.client() as client:
            until(lambda: platform.replicas("slow-00001") == 0, WAIT_S, "its replica has ended")
            found = client.get("services/default/slow")
            assert (found["phase"], found["revisions"][0]["replicas_wanted"]) == ("Ready", 0)
            with Clients(platform.gateway, 1) as clients:
                until(lambda: clients.answers, WAIT_S, "its next request is answered")
            assert clients.answers[0] == 200

            def is_awake() -> bool:
                [revision] = client.get("services/default/slow")["revisions"]
                return bool(revision["replicas_wanted"] == revision["replicas_ready"] == 1)

            until(is_awake, WAIT_S, "the control plane knows that it is awake")
            events = client.all("services/default/slow/events")
        assert not [event for event in events if event["kind"] == "ServiceDegraded"]
        scaled = [event["message"] for event in reversed(events) if event["kind"] == "RevisionScaled"]
        slept, woken = scaled[:2]
        assert slept == "Scaled from 1 to 0: no request came for 10 s"
        assert woken == "Scaled from 0 to 1: a request woke it"
