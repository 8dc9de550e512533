"""A service of an image of its author's, on a real control plane: V2 through Fairlead's proxy, a canary, a way back.

The node is the tests' stand-in for the kubelet: an image is what `images` makes of it, here `_support/predictor.py`.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from clusters.models import Cluster
from deployments.services import service_apply
from integrations.clusters.kubernetes.api import resource_types
from integrations.metrics import counters
from tests.cluster._support import predictor as program
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import harness, loopback_port
from tests.cluster.plane import ControlPlane

pytestmark = pytest.mark.cluster
IMAGES = {name: f"example.org/{name}@sha256:{number:064}" for number, name in enumerate(("first", "second", "bad"))}
_BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
_PORT = 8090  # at 8080 of every address Envoy Gateway serves its metrics


@dataclass
class Custom(OnKubernetes):
    """The platform of the reconciler's tests on a cluster, whose service runs images."""

    def put(self, name: str, *, factor: int, fails: bool = False) -> None:
        document = self.document(policy="half")
        predictor = document["spec"]["predictor"]
        del predictor["model"]
        args = [f"--factor={factor}", *(["--fails"] if fails else [])]
        ports = [{"name": "http", "containerPort": _PORT}]
        predictor["containers"] = [{"image": IMAGES[name], "args": args, "ports": ports}]
        predictor |= {"maxReplicas": 2, "scaleMetric": "concurrency", "scaleTarget": 100}
        service_apply(document=document, namespace=None, name=None, actor="alice", now=self.clock())

    def template(self, revision: str) -> list[str]:
        """Return the names of the containers that a revision's Deployment has."""
        with self.harness.plane.client() as client:
            found = client.get(resource_types.DEPLOYMENT.path("default", revision)).raise_for_status().json()
        return [each["name"] for each in found["spec"]["template"]["spec"]["containers"]]


@dataclass
class Client(threading.Thread):
    """Sends the same request over and over, and keeps revision, status and first number of each answer."""

    url: str
    answers: list[tuple[str, int, object]] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(name="client")

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        with httpx.Client(timeout=30, trust_env=False) as session:
            while not self.over.is_set():
                try:
                    answer = session.post(self.url, json=_BODY)
                    number = answer.json()["outputs"][0]["data"][0] if answer.is_success else None
                    self.answers.append((answer.headers.get("fairlead-revision", ""), answer.status_code, number))
                except httpx.HTTPError as error:
                    self.answers.append(("", 0, repr(error)))


def image(argv: Sequence[str], ip: str) -> Sequence[str]:
    own = ["--address", ip, "--port", str(_PORT), "--loopback-port", str(loopback_port(ip))]
    return [sys.executable, program.__file__, *own, *argv]


@pytest.fixture
def platform(db: None, plane: ControlPlane, tmp_path: Path) -> Iterator[Custom]:
    with harness(plane, tmp_path, images=dict.fromkeys(IMAGES.values(), image)) as running:
        made = Custom(harness=running)
        Cluster.objects.create(name="local", kind="kubernetes", created_at=made.clock())
        yield made
        made.remove()


def test_images_are_rolled_out_by_the_gate_and_a_bad_one_goes_back(platform: Custom) -> None:
    gate = {"minRequests": 30, "maxErrorPercent": 5}
    platform.policy(name="half", steps=[{"weight": 50, "analysis": gate}], scaleDownDelay="1s")
    platform.put("first", factor=2)
    platform.until_so(lambda: platform.view().phase == "Ready")
    assert platform.template("digits-00001") == ["predictor", "runtime"]
    url = f"{platform.harness.gateway.url}/serving/default/digits/v2/models/digits/infer"
    platform.until_so(lambda: httpx.post(url, json=_BODY, timeout=30, trust_env=False).is_success)

    client = Client(url)
    client.start()
    try:
        platform.put("second", factor=3)
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_so(lambda: {answer[0] for answer in client.answers[-20:]} == {"digits-00002"})
        assert set(client.answers) == {("digits-00001", 200, 2.0), ("digits-00002", 200, 3.0)}, "no request is lost"

        platform.put("bad", factor=3, fails=True)
        platform.until_so(lambda: platform.rollout().phase == "Degraded")
        platform.until_so(lambda: {answer[:2] for answer in client.answers[-20:]} == {("digits-00002", 200)})
        assert platform.view().rollout.reason.code == "AnalysisFailed"  # type: ignore[union-attr]
        page = platform.harness.driver.metrics_page("default", platform.seen("digits-00002").replicas[0])
    finally:
        client.over.set()
        client.join()
    assert "nv_inference_request_success" in page
    seen = counters.collect(
        platform.harness.driver.observe("default", "digits"), page_of=platform.harness.driver.metrics_page
    )
    assert seen, "what gate and autoscalers read is there"
