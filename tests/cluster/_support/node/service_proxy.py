"""What stands in for kube-proxy and for names of Services, for tests only: connections to a Service's cluster address
reach one of its ready pods.

Each such address is on the loopback device while the proxy runs. New connections alone are placed, as kube-proxy does;
one that was placed stays.
"""

import itertools
import select
import socket
import socketserver
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import httpx

from tests.cluster._support.changes import Changes
from tests.cluster._support.node.kubelet import address
from tests.cluster.plane import ControlPlane

Json = dict[str, Any]
_CHUNK = 1 << 16
_AT_LEAST_EVERY_S = 2.0


class ServiceProxy:
    """Serves ports of Services by their cluster addresses; they are taken up when they are first asked for."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane, self._client = plane, plane.client()
        self._running = ExitStack()
        self._known: dict[str, str] = {}
        self._lock = threading.Lock()

    def resolve(self, host: str) -> str:
        """Return address and port of `service.namespace:port`, and let it be answered from now on."""
        name, _, port = host.partition(":")
        with self._lock:
            if name not in self._known:
                service, namespace = name.split(".")
                self._known[name] = self._serve(namespace, service, int(port))
        return self._known[name]

    @contextmanager
    def following(self, namespace: str) -> Iterator[None]:
        """Serve every port of every Service of a namespace while the block runs, new ones soon after they are made."""
        over = threading.Event()
        changes = Changes(self._plane, f"/api/v1/namespaces/{namespace}/services")

        def follow() -> None:
            while not over.is_set():
                with suppress(httpx.HTTPError):  # the API server is away; what is known goes on
                    self._take_up(namespace)
                changes.wait(_AT_LEAST_EVERY_S)

        thread = threading.Thread(target=follow, name=f"proxy-of-{namespace}")
        changes.start()
        thread.start()
        try:
            yield
        finally:
            over.set()
            changes.close()
            thread.join()

    def _take_up(self, namespace: str) -> None:
        found = self._client.get(f"/api/v1/namespaces/{namespace}/services").raise_for_status().json()["items"]
        for each in found:
            for port in each["spec"]["ports"] if each["spec"]["clusterIP"] != "None" else ():
                # Its address is part of it: one that was deleted and made again has another.
                known = f"{each['spec']['clusterIP']}:{port['port']}"
                if known not in self._known:
                    name = each["metadata"]["name"]
                    self._known[known] = self._serve(namespace, name, port["port"], port.get("name", ""))

    def close(self) -> None:
        """Answer nothing any more."""
        self._running.close()
        self._client.close()

    def _serve(self, namespace: str, name: str, port: int, port_name: str = "http") -> str:
        found = self._client.get(f"/api/v1/namespaces/{namespace}/services/{name}").raise_for_status().json()
        ip = found["spec"]["clusterIP"]
        self._running.enter_context(address(ip))
        turn = itertools.count()
        proxy = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                pods = proxy.endpoints(namespace, name, port_name)
                if pods:
                    with socket.create_connection(pods[next(turn) % len(pods)], timeout=10) as pod:
                        _join(self.request, pod)

        server = _Server((ip, port), Handler)
        thread = threading.Thread(target=server.serve_forever, name=f"proxy-{name}")
        thread.start()
        self._running.callback(thread.join)
        self._running.callback(server.server_close)
        self._running.callback(server.shutdown)
        return f"{ip}:{port}"

    def endpoints(self, namespace: str, service: str, port_name: str = "http") -> list[tuple[str, int]]:
        """Return where the ready pods of a Service take what comes to a port of it."""
        path = f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"
        query = {"labelSelector": f"kubernetes.io/service-name={service}"}
        slices = self._client.get(path, params=query).raise_for_status().json()["items"]
        return [
            (each["addresses"][0], port["port"])
            for found in slices
            for port in found.get("ports") or ()
            if port["name"] == port_name
            for each in found.get("endpoints") or ()
            if each["conditions"].get("ready")
        ]


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


def _join(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes on both ways until one side ends."""
    peers = {one: other, other: one}
    while True:
        for ready in select.select(list(peers), [], [])[0]:
            data = ready.recv(_CHUNK)
            if not data:
                return
            peers[ready].sendall(data)
