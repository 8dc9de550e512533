"""Replicas that follow the load, end to end: real runtimes that Prometheus scrapes as the chart's monitor says, its own
adapter with the chart's rules, and the real controller of HorizontalPodAutoscalers.

For what is in flight, requests stay in a replica's queue until their client goes: so many are there as there are
clients, at any moment. For time in the queue and CPUs, clients ask a model that takes long without pause.
"""

import http.client
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any, Self
from urllib.parse import urlsplit

import pytest

from clusters.models import Cluster
from deployments.reconcile.reconciler import Outside
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.driver import KubernetesDriver
from tests.cluster._support.metrics.metrics_adapter import metrics_adapter
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import Harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import infer_json, model, slow_model
from tests.servers.parts import MissingPartError, skip_or_fail
from tests.servers.prometheus import Prometheus

pytestmark = pytest.mark.cluster
REVISION = "digits-00001"
_HOURS_US = 3600 * 1_000_000
NEVER_FULL = {"max_batch_size": 1000, "dynamic_batching": {"max_queue_delay_microseconds": _HOURS_US}}


@dataclass
class Autoscaled(OnKubernetes):
    """The platform on a cluster with a metrics adapter."""

    scraper: Prometheus = field(kw_only=True)

    def serve(self, content: bytes, config: dict[str, Any], *, cpu: str = "1", **scaling: Any) -> None:
        """Serve a model with that configuration, and wait until it is ready and routed."""
        self.version(1, content=content)
        resources = {"requests": {"cpu": cpu}}
        served = {"modelFormat": {"name": "onnx"}, "storageUri": "models:/digits/1", "config": config}
        self.apply(policy=None, model={**served, "resources": resources}, **scaling)
        self.until_so(lambda: self.view().phase == "Ready")

    @property
    def outside(self) -> Outside:
        # Without counters of its own: what the reconciler knows of the load it knows from the autoscaler.
        return Outside(self.harness.driver, lambda _seen: (), self.clock)

    def stands_at(self, replicas: int) -> bool:
        """Return whether the autoscaler sees the load, wants so many replicas, and the Deployment was told."""
        with self.harness.plane.client() as client:
            found = client.get(resource_types.AUTOSCALER.path("default", REVISION))
        wanted = found.json().get("status", {}).get("desiredReplicas") if found.status_code == 200 else None
        scaling = self.seen(REVISION).scaling
        return wanted == replicas and scaling is not None and not scaling.problem and scaling.replicas == replicas


@pytest.fixture(scope="module")
def scraper(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with ExitStack() as running:
        try:
            yield running.enter_context(metrics_adapter(plane, tmp_path_factory.mktemp("metrics")))
        except MissingPartError as missing:
            skip_or_fail(missing)


@pytest.fixture
def autoscaled(db: None, cluster: Harness, scraper: Prometheus) -> Iterator[Autoscaled]:
    options = replace(cluster.options, custom_metrics=True)
    api = Api(cluster.plane.kubeconfig)
    driver = KubernetesDriver(api, options)
    platform = Autoscaled(harness=replace(cluster, options=options, driver=driver), scraper=scraper)
    Cluster.objects.create(name="local", kind="kubernetes", created_at=platform.clock())  # which may scale on CPUs
    yield platform
    platform.remove()
    api.close()


class Clients:
    """So many clients, each with a request that waits for its answer; who is refused, or cut off, asks again."""

    def __init__(self, number: int, gateway: str) -> None:
        where, body = urlsplit(gateway), infer_json()
        head = f"POST /serving/default/digits/v2/models/digits/infer HTTP/1.1\r\nhost: {where.netloc}\r\n"
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        self._address, self._request = (where.hostname or "", where.port or 0), head.encode() + body
        self._sockets = [self._asked() for _ in range(number)]

    def keep_asking(self) -> None:
        """Ask again where an answer came."""
        answered, _, _ = select.select(self._sockets, (), (), 0)
        for each in answered:
            each.close()
            self._sockets[self._sockets.index(each)] = self._asked()

    def leave(self) -> None:
        """Wait no longer."""
        for each in self._sockets:
            each.close()

    def _asked(self) -> socket.socket:
        asked = socket.create_connection(self._address)
        asked.sendall(self._request)
        return asked


class Busy:
    """So many clients inside the block, each with one request after the other."""

    def __init__(self, number: int, gateway: str) -> None:
        self._address, self._left = urlsplit(gateway).netloc, threading.Event()
        self._threads = [threading.Thread(target=self._ask, name=f"client-{index}") for index in range(number)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._left.set()
        for thread in self._threads:
            thread.join()

    def _ask(self) -> None:
        connection = http.client.HTTPConnection(self._address, timeout=60)
        while not self._left.is_set():
            try:
                connection.request("POST", "/serving/default/digits/v2/models/digits/infer", infer_json())
                connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                connection.close()  # asks again, over another one
        connection.close()


@pytest.mark.parametrize(
    ("target", "number"),
    [
        pytest.param(1, 10, id="10 in flight at a target of 1 are 10 replicas"),
        pytest.param(5, 50, id="50 in flight at a target of 5 are 10 replicas"),
    ],
)
def test_replicas_follow_requests_in_flight_up_and_down(autoscaled: Autoscaled, target: int, number: int) -> None:
    platform = autoscaled
    platform.serve(model(1), NEVER_FULL, maxReplicas=20, scaleMetric="concurrency", scaleTarget=target)
    platform.until_so(lambda: platform.stands_at(1))

    waiting = f'sum(fairlead_inflight_requests{{revision="{REVISION}"}})'
    clients = Clients(number, platform.harness.gateway.url)
    try:

        def risen() -> bool:
            clients.keep_asking()
            return platform.stands_at(10) and platform.scraper.number(waiting) == number

        platform.until_so(risen)
    finally:
        clients.leave()

    platform.until_so(lambda: platform.stands_at(1))
    platform.until_so(lambda: platform.seen(REVISION).ready_replicas == len(platform.seen(REVISION).replicas) == 1)


@pytest.mark.parametrize(
    ("metric", "target"),
    [
        pytest.param("avg_time_queue_ms", 5, id="time in the queue"),
        pytest.param("cpu", 50, id="CPUs"),
    ],
)
def test_replicas_follow_what_requests_cost_up_and_down(autoscaled: Autoscaled, metric: str, target: int) -> None:
    """Eight clients on one instance wait for each other; half of 0.2 CPUs is less than their requests take."""
    platform = autoscaled
    platform.serve(
        slow_model(), {"max_batch_size": 0}, cpu="200m", maxReplicas=3, scaleMetric=metric, scaleTarget=target
    )
    platform.until_so(lambda: platform.stands_at(1))
    with Busy(8, platform.harness.gateway.url):
        platform.until_so(lambda: platform.stands_at(3) and platform.seen(REVISION).ready_replicas == 3)
    platform.until_so(lambda: platform.stands_at(1))
    platform.until_so(lambda: platform.seen(REVISION).ready_replicas == len(platform.seen(REVISION).replicas) == 1)
