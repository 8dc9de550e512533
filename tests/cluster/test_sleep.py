"""Services that sleep behind Envoy Gateway: their requests wait in Envoy until a first replica is ready."""

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import yaml

from integrations.clusters.base import Access, Desired, DesiredRevision
from integrations.clusters.kubernetes import rbac
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.apply import caller_keys
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.observe.drift import FIELD_MANAGER, WAKER, replicas_owners
from integrations.clusters.kubernetes.options import WakerReference
from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.guarded import KEYS, ROUTES, WITHIN_S, token
from tests.cluster._support.node.kubelet import address
from tests.cluster._support.node.service_proxy import ServiceProxy
from tests.cluster._support.removal import is_removed
from tests.cluster.harness import UNRULY_RUNTIME, Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import model, until

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
NAME, PORT = "digits-00001", 9002
_WAKER, _PLATFORM = "waker", "platform"
"""Names of its Service and user, and its namespace, which is not that of services."""
_ESTABLISHED = "01"
_RBAC = "rbac.authorization.k8s.io"
LARGE = b"x" * (3 << 20)
"""Far more than Envoy's buffers have."""
IP, OTHER_IP = (f"10.{second}.{os.getpid() // 256 % 256}.{os.getpid() % 256}" for second in (63, 61))
METRICS_PORT = 9003


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder, proxy = tmp_path_factory.mktemp("sleep"), ServiceProxy(plane)
    try:
        with (
            harness(plane, folder, runtime=UNRULY_RUNTIME, gateway_of=EnvoyGateway) as running,
            proxy.following("default"),
            address(IP),
        ):
            yield running
    finally:
        proxy.close()


@pytest.fixture(scope="module")
def waker(cluster: Harness, plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator["WakerProcess"]:
    install(plane)
    process = WakerProcess(plane, tmp_path_factory.mktemp("waker"), IP)
    process.start()
    yield process
    process.end()
    with plane.client() as api:
        api.delete(f"/apis/{_RBAC}/v1/clusterroles/fairlead-waker").raise_for_status()


def install(plane: ControlPlane) -> None:
    """Make the waker's Service with one endpoint, the grant for policies of `default`, and its role there."""
    ports = [{"name": "grpc", "port": PORT, "protocol": "TCP", "appProtocol": "kubernetes.io/h2c"}]
    slices = {"addressType": "IPv4", "endpoints": endpoints(IP), "ports": ports}
    asking = {"group": "gateway.envoyproxy.io", "kind": "SecurityPolicy", "namespace": "default"}
    grant = {"apiVersion": "gateway.networking.k8s.io/v1beta1", "kind": "ReferenceGrant"}
    grant |= {"spec": {"from": [asking], "to": [{"group": "", "kind": "Service", "name": _WAKER}]}}
    role = yaml.safe_load(Path(rbac.__file__).with_name("waker_role.yaml").read_text())
    reference = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]}
    bound = {"roleRef": reference, "subjects": [{"kind": "User", "apiGroup": _RBAC, "name": _WAKER}]}
    platform = f"namespaces/{_PLATFORM}"
    with plane.client() as api:
        for path, body in (
            ("/api/v1/namespaces", {"metadata": {"name": _PLATFORM}}),
            (f"/api/v1/{platform}/services", {"spec": {"ports": ports}}),
            (f"/apis/discovery.k8s.io/v1/{platform}/endpointslices", slices),
            (f"/apis/gateway.networking.k8s.io/v1beta1/{platform}/referencegrants", grant),
            (f"/apis/{_RBAC}/v1/clusterroles", role),
            (f"/apis/{_RBAC}/v1/namespaces/default/rolebindings", bound),
        ):
            named = {"metadata": {"name": _WAKER, "labels": {"kubernetes.io/service-name": _WAKER}}}
            api.post(path, json={**named, **body}).raise_for_status()


def endpoints(*ips: str) -> list[dict[str, Any]]:
    return [{"addresses": [ip]} for ip in ips]


def lead_to(plane: ControlPlane, *ips: str) -> None:
    """Have the waker's Service lead to the pods at these addresses."""
    path = f"/apis/discovery.k8s.io/v1/namespaces/{_PLATFORM}/endpointslices/{_WAKER}"
    headers = {"content-type": "application/merge-patch+json"}
    with plane.client() as api:
        api.patch(path, json={"endpoints": endpoints(*ips)}, headers=headers).raise_for_status()


class WakerProcess:
    """The waker as a process, with the rights of its role."""

    def __init__(self, plane: ControlPlane, folder: Path, ip: str) -> None:
        self._ip = ip
        variables = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))},
            "FAIRLEAD_HOME": str(folder / "home"),
            "FAIRLEAD_SECRET_KEY": "x" * 40,
            "FAIRLEAD_WAKER_ADDRESS": f"{ip}:{PORT}",
            "FAIRLEAD_WAKER_METRICS_ADDRESS": f"{ip}:{METRICS_PORT}",
            "FAIRLEAD_WAKER_NAMESPACES": "default",
        }
        self._variables = variables
        self._command = [sys.executable, str(ROOT / "manage.py"), "wake_services"]
        self._command += ["--kubeconfig", str(plane.user(_WAKER))]

    def start(self) -> None:
        """Start it, and wait until it takes calls."""
        self._process = subprocess.Popen(self._command, env=self._variables)
        with grpc.insecure_channel(f"{self._ip}:{PORT}") as channel:
            grpc.channel_ready_future(channel).result(WITHIN_S)

    def is_called(self) -> bool:
        """Return whether Envoy holds a connection to it."""
        place = f"{int.from_bytes(socket.inet_aton(self._ip), 'little'):08X}:{PORT:04X}"
        lines = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()]
        return any(line[1].endswith(place) and line[3] == _ESTABLISHED for line in lines)

    def counted(self, metric: str) -> float:
        """Return a sample of its metrics page."""
        page = httpx.get(f"http://{self._ip}:{METRICS_PORT}/metrics", trust_env=False).text
        return next(float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(metric))

    def kill(self) -> None:
        """End it as a node that fails would."""
        self._process.kill()
        self._process.wait(30)

    def end(self) -> None:
        """End it as the kubelet does."""
        self._process.terminate()
        self._process.wait(30)


class Sleeper:
    """A service that may sleep, as the reconciler applies it."""

    def __init__(self, cluster: Harness) -> None:
        options = replace(cluster.options, waker=WakerReference(_WAKER, _PLATFORM, PORT))
        self.driver, self.api = KubernetesDriver(cluster.api, options), cluster.api
        self.client = httpx.Client(base_url=cluster.gateway.url, timeout=90, trust_env=False)
        self.channel = grpc.insecure_channel(cluster.gateway.url.removeprefix("http://"))
        stored, self.generation = cluster.store(model(1)), 0
        self.revision = DesiredRevision(NAME, "digits", "1", stored.uri, stored.digest, 1, 100, may_sleep=True)

    def apply(self, replicas: int, slept_at: float | None, look: Callable[[], object], what: str) -> None:
        """Apply again and again until `look` holds and the gateway does what is desired."""
        self.generation += 1
        revision = replace(self.revision, replicas=replicas, slept_at=slept_at)
        desired = Desired("default", "digits", self.generation, (revision,), access=Access())

        def done() -> bool:
            self.driver.apply(desired)
            seen = self.driver.observe("default", "digits")
            return bool(seen.generation == self.generation and not seen.message and look())

        until(done, what, WITHIN_S)

    def deployment(self) -> dict[str, Any]:
        found = self.api.fetch(resource_types.DEPLOYMENT, "default", NAME)
        assert found is not None
        return found

    def pods(self) -> int:
        return len(self.driver.observe("default", "digits").revisions[0].replicas)

    def routing(self) -> str:
        policy = self.api.fetch(resource_types.TRAFFIC_POLICY, "default", "digits")
        return str((policy or {}).get("spec", {}).get("routingType", ""))

    def sleep(self, slept_at: float) -> None:
        """Have it sleep, as the reconciler does once no request came."""
        self.apply(0, slept_at, lambda: not self.pods(), "its replicas ended")
        assert self.routing() == "Service"

    def post_over_http2(self, url: str) -> str:
        """Post as curl does over HTTP/2, and return its status and version."""
        command = ["curl", "-s", "--http2-prior-knowledge", "-o", os.devnull, "-w", "%{http_code} %{http_version}"]
        command += ["-H", f"authorization: Bearer {token()}", "-d", "{}", f"{url}{ROUTES['main'][1]}"]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=90).stdout

    def post(self, bearer: str, content: bytes = b"{}") -> int:
        headers = {"authorization": f"Bearer {bearer}"} if bearer else {}
        return self.client.post(ROUTES["main"][1], content=content, headers=headers).status_code

    def call(self, method: str, bearer: str) -> str:
        metadata = [("fairlead-service", "default/digits"), ("authorization", f"Bearer {bearer}")]
        try:
            self.channel.unary_unary(f"/inference.GRPCInferenceService/{method}")(b"", metadata=metadata, timeout=90)
        except grpc.RpcError as error:
            return str(error.code().name)
        return "OK"

    def stream(self) -> int:
        """Send a stream of one message over gRPC, and return the number of answers."""
        metadata = [("fairlead-service", "default/digits"), ("authorization", f"Bearer {token()}")]
        stream = self.channel.stream_stream("/inference.GRPCInferenceService/ModelStreamInfer")
        return len(list(stream(iter([b""]), metadata=metadata, timeout=90)))


@pytest.fixture
def sleeper(cluster: Harness, waker: WakerProcess) -> Iterator[Sleeper]:
    caller_keys.push(cluster.api, KEYS, ["default"])
    found = Sleeper(cluster)
    found.apply(1, None, lambda: found.post(token()) == 200, "the service answers")
    yield found
    found.generation += 1
    until(lambda: is_removed(found.driver, "digits", found.generation), "the service is gone", WITHIN_S)
    found.channel.close()
    found.client.close()


def test_requests_wait_in_envoy_for_the_first_replica_and_others_wake_nothing(
    cluster: Harness, sleeper: Sleeper
) -> None:
    slept_at = time.time()
    sleeper.sleep(slept_at)
    assert (sleeper.post(""), sleeper.post("a.b.c"), sleeper.post(token(services=("prod/*",)))) == (401, 401, 403)
    assert sleeper.post(token(token_id="2" * 32)) == 403
    probe = sleeper.client.get(ROUTES["health"][1], headers={"authorization": f"Bearer {token()}"})
    assert (probe.status_code, probe.json()) == (200, {"ready": True})
    assert sleeper.call("ModelReady", token()) == "UNAVAILABLE"
    assert sleeper.deployment()["spec"]["replicas"] == 0

    with ThreadPoolExecutor(8) as pool:
        stream = pool.submit(sleeper.stream)
        over_http2 = pool.submit(sleeper.post_over_http2, cluster.gateway.url)
        asked = [pool.submit(sleeper.post, token(), content) for content in (b"{}", b"{}", LARGE)]
        calls = [pool.submit(sleeper.call, method, token()) for method in ("ModelInfer", "ModelMetadata")]
        assert [each.result(90) for each in asked] == [200] * 3
        assert [each.result(90) for each in calls] == ["OK"] * 2
        assert over_http2.result(90) == "200 2"
        assert stream.result(90) == 1
    assert {each.manager for each in replicas_owners(sleeper.deployment())} == {WAKER}
    seen = sleeper.driver.observe("default", "digits").revisions[0]
    assert seen.slept_at == slept_at
    assert seen.woken_at is not None
    assert slept_at - 1 <= seen.woken_at <= time.time()  # of whole seconds

    sleeper.generation -= 1  # the reconciler, which does not know it yet
    sleeper.apply(0, slept_at, lambda: sleeper.post(token()) == 200, "it goes on to answer")
    assert sleeper.deployment()["spec"]["replicas"] == 1
    stopped, statuses = threading.Event(), set[int]()

    def ask() -> None:
        while not stopped.is_set():
            statuses.add(sleeper.post(token()))

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        sleeper.apply(1, slept_at, lambda: not sleeper.routing(), "requests go to its pods again")
    finally:
        stopped.set()
        asking.join()
    assert statuses == {200}
    assert {each.manager for each in replicas_owners(sleeper.deployment())} == {FIELD_MANAGER, WAKER}
    sleeper.apply(0, slept_at + 60, lambda: not sleeper.pods(), "it sleeps again")
    assert {each.manager for each in replicas_owners(sleeper.deployment())} == {FIELD_MANAGER}


def test_without_a_waker_requests_end_soon_and_what_is_awake_answers(sleeper: Sleeper, waker: WakerProcess) -> None:
    waker.kill()
    try:
        assert sleeper.post(token()) == 200, "it is awake"
        slept_at = time.time()
        sleeper.sleep(slept_at)
        assert sleeper.post(token()) == 503
        assert not sleeper.deployment()["spec"]["replicas"]
    finally:
        waker.start()
    until(lambda: sleeper.call("ModelInfer", token()) == "OK", "a gRPC call wakes it", WITHIN_S)

    sleeper.apply(1, slept_at, lambda: not sleeper.routing(), "the reconciler knows that it is awake")
    sleeper.sleep(slept_at + 60)
    with ThreadPoolExecutor(1) as pool:
        held = pool.submit(sleeper.post, token())
        until(lambda: sleeper.deployment()["spec"]["replicas"], "the request wakes it", WITHIN_S)
        waker.kill()
        try:
            assert held.result(90) in (200, 503)
            until(lambda: sleeper.post(token()) == 200, "another try is answered without the waker", WITHIN_S)
        finally:
            waker.start()


def test_two_wakers_share_the_requests_and_one_that_ends_answers_what_it_holds(
    sleeper: Sleeper, waker: WakerProcess, plane: ControlPlane, tmp_path: Path
) -> None:
    other = WakerProcess(plane, tmp_path, OTHER_IP)
    ready = 'fairlead_waker_requests_total{result="ready"}'
    with address(OTHER_IP):
        other.start()
        try:
            lead_to(plane, IP, OTHER_IP)
            until(lambda: sleeper.post(token()) == 200 and other.is_called(), "Envoy knows both", WITHIN_S)
            before, slept_at = waker.counted(ready), time.time()
            sleeper.sleep(slept_at)
            with ThreadPoolExecutor(16) as pool:
                asked = [pool.submit(sleeper.post, token()) for _ in range(16)]
                held = "fairlead_waker_held_requests"
                until(lambda: other.counted(held), "it holds some", WITHIN_S)
                other.end()
                assert [each.result(90) for each in asked] == [200] * 16
            assert 0 < waker.counted(ready) - before < 16
        finally:
            lead_to(plane, IP)
            other.end()
