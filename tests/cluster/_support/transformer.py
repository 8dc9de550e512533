"""A V2 transformer for tests: doubles the numbers of a request and asks its predictor, as KServe's own would.

`python transformer.py --address 10.0.0.1 --http_port 8080 --model_name digits --predictor_host HOST:PORT [--factor 2]`
"""

import argparse
import http.client
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length", "host"}


def handler(predictor: str, factor: float) -> type[BaseHTTPRequestHandler]:
    """Return what answers requests for a predictor."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            if self.path.startswith("/v2/health/"):
                self._answer(200, b"", {})
            else:
                self._ask(None)

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            for tensor in asked["inputs"]:
                tensor["data"] = [factor * number for number in tensor["data"]]
            self._ask(json.dumps(asked).encode())

        def _ask(self, body: bytes | None) -> None:
            connection = http.client.HTTPConnection(predictor, timeout=30)
            try:
                headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
                connection.request(self.command, self.path, body, headers)
                answer = connection.getresponse()
                kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
                self._answer(answer.status, answer.read(), kept)
            finally:
                connection.close()

        def _answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def main() -> None:
    """Serve until it is told to end."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--http_port", type=int, required=True)
    parser.add_argument("--model_name", required=True)
    parser.add_argument("--predictor_host", required=True)
    parser.add_argument("--factor", type=float, default=2.0)
    options = parser.parse_args()
    server = ThreadingHTTPServer((options.address, options.http_port), handler(options.predictor_host, options.factor))
    server.serve_forever()


if __name__ == "__main__":
    main()
