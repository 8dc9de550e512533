"""A custom metrics API for tests only: an aggregated API server whose numbers a test chooses.

The API server sends `/apis/custom.metrics.k8s.io` here, as it does to a metrics adapter, and the controller of
HorizontalPodAutoscalers reads it as on any cluster. Pods are asked for at the API server; what each of them has of a
metric is what `measure` says.
"""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.cluster._support.metrics.aggregated import aggregated
from tests.cluster.plane import ControlPlane

Json = dict[str, Any]
Measure = Callable[[str, Sequence[Json]], dict[str, float]]
"""Returns the value of each pod, by its name, given a metric's name and the pods; one that is left out has none."""

GROUP, VERSION = "custom.metrics.k8s.io", "v1beta2"
_NAME = "test-metrics"


@contextmanager
def custom_metrics(plane: ControlPlane, metrics: Sequence[str], measure: Measure) -> Iterator[None]:
    """Serve metrics of pods inside the block."""
    pair = plane.issue(_NAME, addresses=["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    client = plane.client()
    root = f"/apis/{GROUP}/{VERSION}"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            if address.path == root:
                self._answer(_resources(metrics))
            elif address.path.startswith(f"{root}/namespaces/") and (metric := address.path.split("/")[-1]) in metrics:
                namespace = address.path.removeprefix(f"{root}/namespaces/").split("/")[0]
                selector = parse_qs(address.query).get("labelSelector", [""])[0]
                path, query = f"/api/v1/namespaces/{namespace}/pods", {"labelSelector": selector}
                pods = client.get(path, params=query).raise_for_status().json()["items"]
                self._answer(_values(namespace, metric, measure(metric, pods)))
            else:
                self.send_error(404)

        def _answer(self, content: Json) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, name=_NAME)
    thread.start()
    try:
        with aggregated(plane, GROUP, VERSION, server.server_port):
            yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        client.close()


def _resources(metrics: Sequence[str]) -> Json:
    resources = [
        {"name": f"pods/{name}", "singularName": "", "namespaced": True, "kind": "MetricValueList", "verbs": ["get"]}
        for name in metrics
    ]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{VERSION}", "resources": resources}


def _values(namespace: str, metric: str, values: dict[str, float]) -> Json:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    items = [
        {
            "describedObject": {"kind": "Pod", "namespace": namespace, "name": pod, "apiVersion": "/v1"},
            "metric": {"name": metric, "selector": None},
            "timestamp": now,
            "value": f"{round(value * 1000)}m",
        }
        for pod, value in values.items()
    ]
    return {"kind": "MetricValueList", "apiVersion": f"{GROUP}/{VERSION}", "metadata": {}, "items": items}
