"""Pods and nodes as Prometheus' own discovery gives them, for a Prometheus that is built without it, as Debian's is.

Targets and the labels `__meta_kubernetes_*` are those of `kubernetes_sd_config`: with the role `pod` one target for
each port of a container that is declared, with the role `node` the kubelet. They are asked for over HTTP
(`http_sd_config`).
"""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.cluster.plane import ControlPlane

_META = "__meta_kubernetes"


@contextmanager
def discovery(plane: ControlPlane, namespace: str) -> Iterator[str]:
    """Give the address below which Prometheus asks for `pods` of a namespace, and for `nodes`."""
    client = plane.client()
    roles = {"/pods": (f"/api/v1/namespaces/{namespace}/pods", targets), "/nodes": ("/api/v1/nodes", kubelets)}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, found = roles[self.path]
            items = client.get(path).raise_for_status().json()["items"]
            body = json.dumps([target for each in items for target in found(each)]).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="discovery")
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        client.close()


def targets(pod: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what Prometheus may scrape of a pod; nothing while it has no address."""
    metadata, ip = pod["metadata"], pod["status"].get("podIP")
    labels = {f"{_META}_namespace": metadata["namespace"], f"{_META}_pod_name": metadata["name"]}
    for name, value in metadata.get("labels", {}).items():
        safe = re.sub(r"[^a-zA-Z0-9_]", "_", name)
        labels |= {f"{_META}_pod_label_{safe}": value, f"{_META}_pod_labelpresent_{safe}": "true"}
    for container in pod["spec"]["containers"] if ip else ():
        for port in container.get("ports", ()):
            own = {f"{_META}_pod_container_port_name": port["name"]}
            yield {"targets": [f"{ip}:{port['containerPort']}"], "labels": {**labels, **own}}


def kubelets(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a node's kubelet; nothing where it has none."""
    status = node["status"]
    port = status.get("daemonEndpoints", {}).get("kubeletEndpoint", {}).get("Port")
    for address in status.get("addresses", ())[:1] if port else ():
        yield {"targets": [f"{address['address']}:{port}"], "labels": {f"{_META}_node_name": node["metadata"]["name"]}}
