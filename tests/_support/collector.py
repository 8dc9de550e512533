"""An OTLP collector over HTTP that keeps the spans it takes, as the OpenTelemetry Collector takes them."""

import gzip
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TRACE_ID, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE_ID}-{PARENT}-01"
UNSAMPLED = f"00-{TRACE_ID}-{PARENT}-00"


class Collector:
    """Takes spans at `url`, below `endpoint`."""

    def __init__(self, port: int = 0) -> None:
        self.requests: queue.Queue[ExportTraceServiceRequest] = queue.Queue()
        self.headers: list[dict[str, str]] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    content = gzip.decompress(content)
                assert (self.path, self.headers["Content-Type"]) == ("/v1/traces", "application/x-protobuf")
                collector.headers.append(dict(self.headers))
                collector.requests.put(ExportTraceServiceRequest.FromString(content))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.endpoint = f"http://127.0.0.1:{self.port}"
        self.url = f"127.0.0.1:{self.port}/v1/traces"

    def spans(self, count: int) -> tuple[dict[str, str], list[Any]]:
        """Return the resource's attributes and the next so many spans."""
        resource: dict[str, str] = {}
        found: list[Any] = []
        while len(found) < count:
            resource, spans = _of(self.requests.get(timeout=20), resource)
            found += spans
        assert len(found) == count, [span.name for span in found]
        return resource, found

    def until(self, *names: str, within_s: float = 30.0) -> dict[str, Any]:
        """Return the last span of each of these names, once all of them have come."""
        deadline, found = time.monotonic() + within_s, {}
        while not found.keys() >= set(names):
            try:
                _, spans = _of(self.requests.get(timeout=max(0.01, deadline - time.monotonic())), {})
            except queue.Empty:
                raise AssertionError(f"no spans {sorted(set(names) - found.keys())}, only {sorted(found)}") from None
            found |= {span.name: span for span in spans}
        return found


def _of(request: ExportTraceServiceRequest, resource: dict[str, str]) -> tuple[dict[str, str], list[Any]]:
    spans: list[Any] = []
    for group in request.resource_spans:
        resource = attributes(group.resource)
        spans += [span for scope in group.scope_spans for span in scope.spans]
    return resource, spans


def attributes(holder: Any) -> dict[str, str]:
    """Return the attributes that are texts."""
    return {attribute.key: attribute.value.string_value for attribute in holder.attributes}


@contextmanager
def collecting(port: int = 0) -> Iterator[Collector]:
    """Run a collector."""
    found = Collector(port)
    thread = threading.Thread(target=found.server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield found
    finally:
        found.server.shutdown()
        found.server.server_close()
        thread.join(20)
