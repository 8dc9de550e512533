"""What the filters that hold requests cost the gateway: its processor time for a request of a service that is awake.

    python -m benchmarks.pools.filters [--rounds 10] [--requests 4000]

Two Envoys as the local cluster has them, one without these filters, are asked by turns. They have one server behind
them, which answers at once.
"""

import argparse
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.pools.by_turns import by_http, measured, report
from benchmarks.serving import envoys
from integrations.clusters.base import CallerKeys
from integrations.clusters.local.agent.gateway.routing import Routing
from integrations.clusters.local.envoy import wake
from integrations.clusters.local.envoy.values import Backend, Endpoint, RevisionEndpoints, ServiceRoute

_PATH = "/serving/default/digits/v2/models/digits/infer"
_FILTERS = {each["name"] for each in (*wake.filters(), wake.routes_filter())}


class Handler(BaseHTTPRequestHandler):
    """Answers each request with two bytes."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=4000, help="in each part of a round")
    options = parser.parse_args()
    behind = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=behind.serve_forever, daemon=True).start()
    port = behind.server_address[1]
    service = ServiceRoute("default", "digits", (Backend("digits-00001", "1", 100),))
    endpoints = (Endpoint(port, port, name="digits-00001-0"),)
    routing = Routing((service,), (RevisionEndpoints("default", "digits-00001", endpoints),), CallerKeys())
    with tempfile.TemporaryDirectory() as scratch:
        without, its = envoys.start(routing, Path(scratch) / "without", left_out=_FILTERS)
        try:
            those, theirs = envoys.start(routing, Path(scratch) / "with")
            try:
                servers = {
                    "without": (without.pid, lambda count: by_http(its, _PATH, count)),
                    "with": (those.pid, lambda count: by_http(theirs, _PATH, count)),
                }
                report("Envoy, HTTP", measured(servers, options.rounds, options.requests))
            finally:
                those.stop()
        finally:
            without.stop()


if __name__ == "__main__":
    main()
