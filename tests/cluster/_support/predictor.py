"""A custom predictor for tests: a V2 server that multiplies numbers, and fails on request.

`python predictor.py --address 10.0.0.1 --port 8080 --loopback-port 10001 --factor 2 [--fails]`
"""

import argparse
import json
import os
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def handler(factor: float, *, fails: bool) -> type[BaseHTTPRequestHandler]:
    """Return what answers V2 requests."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # head and body in one packet

        def do_GET(self) -> None:
            self._answer(200 if self.path == "/v2/health/ready" else 404, {})

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if fails:
                self._answer(500, {"error": "it fails"})
                return
            tensor = asked["inputs"][0]
            made = {**tensor, "name": "y", "data": [factor * number for number in tensor["data"]]}
            self._answer(200, {"model_name": os.environ["MODEL_NAME"], "outputs": [made]})

        def _answer(self, status: int, said: object) -> None:
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            return

    return Handler


def main() -> None:
    """Serve until it is ended, at the pod's address and, for the proxy, at loopback."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--loopback-port", type=int, required=True)
    parser.add_argument("--factor", type=float, default=1.0)
    parser.add_argument("--fails", action="store_true")
    found = parser.parse_args()
    answers = handler(found.factor, fails=found.fails)
    beside = ThreadingHTTPServer(("127.0.0.1", found.loopback_port), answers)
    threading.Thread(target=beside.serve_forever, daemon=True).start()
    ThreadingHTTPServer((found.address, found.port), answers).serve_forever()


if __name__ == "__main__":
    main()
