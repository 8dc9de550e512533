"""Services that sleep behind Envoy Gateway: their requests wait in Envoy until a first replica is ready."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from integrations.clusters.base import Access, Desired, DesiredRevision
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
_WAKER = "waker"
LARGE = b"x" * (3 << 20)
"""Far more than Envoy's buffers have."""
IP = f"10.63.{os.getpid() // 256 % 256}.{os.getpid() % 256}"


@pytest.fixture(scope="module")
def cluster(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    folder, proxy = tmp_path_factory.mktemp("sleep"), ServiceProxy(plane)
    try:
        with (
            harness(plane, folder, runtime=UNRULY_RUNTIME, gateway_of=EnvoyGateway) as running,
            proxy.following("default"),
            waker(plane, folder),
        ):
            yield running
    finally:
        proxy.close()


@contextmanager
def waker(plane: ControlPlane, folder: Path) -> Iterator[None]:
    """Run the waker as a process, with a Service that leads to it."""
    variables = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("FAIRLEAD_", "DJANGO_"))},
        "FAIRLEAD_HOME": str(folder / "home"),
        "FAIRLEAD_SECRET_KEY": "x" * 40,
        "FAIRLEAD_WAKER_ADDRESS": f"{IP}:{PORT}",
    }
    command = [sys.executable, str(ROOT / "manage.py"), "wake_services", "--kubeconfig", str(plane.kubeconfig)]
    ports = [{"name": "grpc", "port": PORT, "protocol": "TCP", "appProtocol": "kubernetes.io/h2c"}]
    named = {"name": _WAKER, "labels": {"kubernetes.io/service-name": _WAKER}}
    slices = {"addressType": "IPv4", "endpoints": [{"addresses": [IP]}], "ports": ports}
    with plane.client() as api:
        for path, body in (
            ("/api/v1/namespaces/default/services", {"spec": {"ports": ports}}),
            ("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", slices),
        ):
            api.post(path, json={"metadata": named, **body}).raise_for_status()
    with address(IP), subprocess.Popen(command, env=variables) as process:
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


class Sleeper:
    """A service that may sleep, as the reconciler applies it."""

    def __init__(self, cluster: Harness) -> None:
        options = replace(cluster.options, waker=WakerReference(_WAKER, "default", PORT))
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


@pytest.fixture
def sleeper(cluster: Harness) -> Iterator[Sleeper]:
    caller_keys.push(cluster.api, KEYS, ["default"])
    found = Sleeper(cluster)
    found.apply(1, None, lambda: found.post(token()) == 200, "the service answers")
    yield found
    found.generation += 1
    until(lambda: is_removed(found.driver, "digits", found.generation), "the service is gone", WITHIN_S)
    found.channel.close()
    found.client.close()


def test_requests_wait_in_envoy_for_the_first_replica_and_others_wake_nothing(sleeper: Sleeper) -> None:
    slept_at = time.time()
    sleeper.apply(0, slept_at, lambda: not sleeper.pods(), "its replicas ended")
    assert sleeper.routing() == "Service"
    assert (sleeper.post(""), sleeper.post("a.b.c"), sleeper.post(token(services=("prod/*",)))) == (401, 401, 403)
    assert sleeper.post(token(token_id="2" * 32)) == 403
    probe = sleeper.client.get(ROUTES["health"][1], headers={"authorization": f"Bearer {token()}"})
    assert (probe.status_code, probe.json()) == (200, {"ready": True})
    assert sleeper.call("ModelReady", token()) == "UNAVAILABLE"
    assert sleeper.deployment()["spec"]["replicas"] == 0

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(sleeper.post, token(), content) for content in (b"{}", b"{}", LARGE)]
        calls = [pool.submit(sleeper.call, method, token()) for method in ("ModelInfer", "ModelMetadata")]
        assert [each.result(90) for each in asked] == [200] * 3
        assert [each.result(90) for each in calls] == ["OK"] * 2
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
