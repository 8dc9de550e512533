"""A transformer and an explainer on Kubernetes, through a canary and the way back, with no failed request.

Stable doubles its inputs and multiplies them by 1, the canary trebles and multiplies by 10: an answer that mixes them
would be another number. The explainer finds these factors by what clients' requests would be answered.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType

import httpx
import pytest

from clusters.models import Cluster
from deployments.models import InferenceService
from deployments.services import rollout_promote, service_apply, service_rollback
from integrations.clusters.kubernetes.api import resource_types
from tests.cluster._support import explainer, transformer
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.gateway.gateway import Gateway
from tests.cluster._support.node.pod import Image
from tests.cluster._support.node.service_proxy import ServiceProxy
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import harness
from tests.cluster.plane import ControlPlane

pytestmark = pytest.mark.cluster
IMAGES = {"example.org/times:1": transformer, "example.org/occlusion:1": explainer}
TIMES, OCCLUSION = IMAGES
_PORT = 8090  # at 8080 of every address Envoy Gateway serves its metrics
BODY = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}


@dataclass
class Transformed(OnKubernetes):
    """The platform of the reconciler's tests on a cluster, whose services have a transformer and an explainer."""

    def put(self, number: int, factor: int, replicas: int) -> None:
        document = self.document(f"models:/digits/{number}", policy="half")
        ports = [{"name": "http", "containerPort": _PORT}]
        container = {"image": TIMES, "args": [f"--factor={factor}"], "ports": ports}
        document["spec"]["transformer"] = {"minReplicas": replicas, "containers": [container]}
        document["spec"]["explainer"] = {"containers": [{"image": OCCLUSION, "ports": ports}]}
        service_apply(document=document, namespace=None, name=None, actor="alice", now=self.clock())

    def running(self) -> dict[str, int]:
        """Return the ready replicas of every Deployment."""
        with self.harness.plane.client() as client:
            found = client.get(resource_types.DEPLOYMENT.path("default")).raise_for_status().json()["items"]
        return {each["metadata"]["name"]: each["status"].get("readyReplicas", 0) for each in found}


def running(number: int, *, transformers: int) -> dict[str, int]:
    """Return the replicas of every Deployment where one revision runs."""
    name = f"digits-{number:05}"
    return {name: 1, f"{name}-transformer": transformers, f"{name}-explainer": 1}


def infer(answer: httpx.Response) -> object:
    """Return the first output."""
    return answer.json()["outputs"][0]["data"][0]


def explanation(answer: httpx.Response) -> object:
    """Return by how much the outputs change with the first input."""
    return answer.json()["explanations"][0][0]


@dataclass
class Client(threading.Thread):
    """Sends 1, 2, 3, 4 over and over, and keeps what every answer was."""

    url: str
    read: Callable[[httpx.Response], object] = infer
    answers: list[tuple[str, object]] = field(default_factory=list)  # revision, the first number or what went wrong
    over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        super().__init__(name="client")

    def __hash__(self) -> int:
        return id(self)

    def run(self) -> None:
        with httpx.Client(timeout=30, trust_env=False) as session:
            while not self.over.is_set():
                try:
                    answer = session.post(self.url, json=BODY)
                    said: object = self.read(answer) if answer.is_success else answer.text
                    self.answers.append((answer.headers.get("fairlead-revision", ""), said))
                except httpx.HTTPError as error:
                    self.answers.append(("", repr(error)))


@pytest.fixture(
    params=[pytest.param(Gateway, id="translated for tests"), pytest.param(EnvoyGateway, id="Envoy Gateway")]
)
def platform(db: None, plane: ControlPlane, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Transformed]:
    proxy = ServiceProxy(plane)

    def image_of(program: ModuleType) -> Image:
        def image(argv: Sequence[str], ip: str) -> Sequence[str]:
            flags = dict(word.removeprefix("--").split("=", 1) for word in argv)
            predictor = proxy.resolve(flags["predictor_host"])
            own = {**flags, "predictor_host": predictor, "address": ip, "http_port": str(_PORT)}
            return [sys.executable, str(program.__file__), *(f"--{name}={value}" for name, value in own.items())]

        return image

    images = {name: image_of(program) for name, program in IMAGES.items()}
    try:
        with harness(plane, tmp_path, images=images, gateway_of=request.param) as running:
            made = Transformed(harness=running)
            Cluster.objects.create(name="local", kind="kubernetes", created_at=made.clock())
            yield made
            made.remove()
    finally:
        proxy.close()


def test_companions_are_rolled_out_and_back_with_their_predictor(platform: Transformed) -> None:
    platform.version(1)
    platform.version(10)
    platform.policy(name="half", steps=[{"weight": 50, "pause": True}], scaleDownDelay="1s")
    platform.put(1, factor=2, replicas=2)
    platform.until_so(lambda: platform.view().phase == "Ready")
    assert platform.running() == running(1, transformers=2), "each is scaled apart"
    address = f"{platform.harness.gateway.url}/serving/default/digits"
    url, paths = f"{address}/v2/models/digits/infer", ("/v1/models/digits:explain", "/v2/models/digits/explain")
    platform.until_so(lambda: all(_is_answered(each) for each in (url, *(f"{address}{path}" for path in paths))))
    for trick in ("/v1/models/digits%3Aexplain", "/v2/models/digits/versions/1/explain"):
        assert "explanations" not in _posted(f"{address}{trick}").text, "the predictor answers"

    clients = [Client(url), *(Client(f"{address}{path}", explanation) for path in paths)]

    def until_all_are_of(*revisions: str) -> None:
        platform.until_so(lambda: all({name for name, _ in each.answers[-20:]} == {*revisions} for each in clients))

    for client in clients:
        client.start()
    try:
        platform.put(10, factor=3, replicas=1)
        platform.until_so(lambda: platform.rollout().phase == "Paused")
        until_all_are_of("digits-00001", "digits-00002")
        rollout_promote(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_so(lambda: platform.running() == running(2, transformers=1))
        until_all_are_of("digits-00002")

        service_rollback(namespace="default", name="digits", revision=None, actor="alice", now=platform.clock())
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_so(lambda: platform.running() == running(1, transformers=2))
        until_all_are_of("digits-00001")
    finally:
        for client in clients:
            client.over.set()
            client.join()
    for client in clients:
        assert set(client.answers) == {("digits-00001", 2.0), ("digits-00002", 30.0)}, client.url
    args = InferenceService.objects.get().document["spec"]["transformer"]["containers"][0]["args"]
    assert args == ["--factor=2"], "the file says again what serves"


def _posted(url: str) -> httpx.Response:
    return httpx.post(url, json=BODY, timeout=30, trust_env=False)


def _is_answered(url: str) -> bool:
    return _posted(url).is_success
