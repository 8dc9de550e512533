"""A transformer before its predictor on Kubernetes, through a canary and the way back, with no failed request.

Stable doubles its inputs and multiplies them by 1, the canary trebles and multiplies by 10: an answer that mixes them
would be another number.
"""

import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from clusters.models import Cluster
from deployments.models import InferenceService
from deployments.services import rollout_promote, service_apply, service_rollback
from integrations.clusters.kubernetes.api import resource_types
from tests.cluster._support import transformer as program
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.gateway.gateway import Gateway
from tests.cluster._support.node.service_proxy import ServiceProxy
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import harness
from tests.cluster.plane import ControlPlane

pytestmark = pytest.mark.cluster
IMAGE = "example.org/times:1"
_PORT = 8090  # at 8080 of every address Envoy Gateway tells its metrics
_WITHIN_S = 600.0


@dataclass
class Transformed(OnKubernetes):
    """The platform of the reconciler's tests on a cluster, whose services have a transformer."""

    def put(self, number: int, factor: int, replicas: int) -> None:
        document = self.document(f"models:/digits/{number}", policy="half")
        ports = [{"name": "http", "containerPort": _PORT}]
        container = {"image": IMAGE, "args": [f"--factor={factor}"], "ports": ports}
        document["spec"]["transformer"] = {"minReplicas": replicas, "containers": [container]}
        service_apply(document=document, namespace=None, name=None, actor="alice", now=self.clock())

    def running(self) -> dict[str, int]:
        """Return the ready replicas of every Deployment."""
        with self.harness.plane.client() as client:
            found = client.get(resource_types.DEPLOYMENT.path("default")).raise_for_status().json()["items"]
        return {each["metadata"]["name"]: each["status"].get("readyReplicas", 0) for each in found}


@dataclass
class Client(threading.Thread):
    """Sends 1, 2, 3, 4 over and over, and keeps what every answer was."""

    url: str
    answers: list[tuple[str, object]] = field(default_factory=list)  # revision, the first number or what went wrong
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(name="client")

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
        with httpx.Client(timeout=30, trust_env=False) as session:
            while not self.over.is_set():
                try:
                    answer = session.post(self.url, json=body)
                    said: object = answer.json()["outputs"][0]["data"][0] if answer.is_success else answer.text
                    self.answers.append((answer.headers.get("fairlead-revision", ""), said))
                except httpx.HTTPError as error:
                    self.answers.append(("", repr(error)))


@pytest.fixture(
    params=[pytest.param(Gateway, id="translated for tests"), pytest.param(EnvoyGateway, id="Envoy Gateway")]
)
def platform(db: None, plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Transformed]:
    proxy = ServiceProxy(plane)

    def image(argv: Sequence[str], ip: str) -> Sequence[str]:
        told = dict(word.removeprefix("--").split("=", 1) for word in argv)
        own = {**told, "predictor_host": proxy.resolve(told["predictor_host"]), "address": ip, "http_port": str(_PORT)}
        return [sys.executable, program.__file__, *(f"--{name}={value}" for name, value in own.items())]

    try:
        with harness(plane, tmp_path, images={IMAGE: image}, gateway_of=request.param) as running:
            made = Transformed(harness=running)
            Cluster.objects.create(name="local", kind="kubernetes", created_at=made.clock())
            yield made
            made.remove()
    finally:
        proxy.close()


def test_a_transformer_is_rolled_out_and_back_with_its_predictor(platform: Transformed) -> None:
    platform.version(1)
    platform.version(10)
    platform.policy(name="half", steps=[{"weight": 50, "pause": True}], scaleDownDelay="1s")
    platform.put(1, factor=2, replicas=2)
    platform.until_so(lambda: platform.view().phase == "Ready")
    assert platform.running() == {"digits-00001": 1, "digits-00001-transformer": 2}, "each is scaled apart"
    url = f"{platform.harness.gateway.url}/serving/default/digits/v2/models/digits/infer"
    platform.until_so(lambda: _answers(url))

    client = Client(url)
    client.start()
    try:
        platform.put(10, factor=3, replicas=1)
        platform.until_so(lambda: platform.rollout().phase == "Paused")
        platform.until_so(lambda: {name for name, _ in client.answers[-30:]} == {"digits-00001", "digits-00002"})
        rollout_promote(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_so(lambda: platform.running() == {"digits-00002": 1, "digits-00002-transformer": 1})
        platform.until_so(lambda: {name for name, _ in client.answers[-20:]} == {"digits-00002"})

        service_rollback(namespace="default", name="digits", revision=None, actor="alice", now=platform.clock())
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_so(lambda: platform.running() == {"digits-00001": 1, "digits-00001-transformer": 2})
        platform.until_so(lambda: {name for name, _ in client.answers[-20:]} == {"digits-00001"})
    finally:
        client.over.set()
        client.join()
    assert set(client.answers) == {("digits-00001", 2.0), ("digits-00002", 30.0)}
    args = InferenceService.objects.get().document["spec"]["transformer"]["containers"][0]["args"]
    assert args == ["--factor=2"], "the file says again what serves"


def _answers(url: str) -> bool:
    body = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
    return httpx.post(url, json=body, timeout=30, trust_env=False).is_success
