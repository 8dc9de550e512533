"""An explainer for tests: occlusion. An input matters by how much less the sum of outputs is when it is 0.

`python explainer.py --address 10.0.0.1 --http_port 8080 --model_name digits --predictor_host HOST:PORT`

It answers explain requests of V1 and V2 alone, and asks its predictor by V2. Its answers have the revision of the
predictor's, and the names of the headers that reached it.
"""

import argparse
import http.client
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def handler(model: str, predictor: str) -> type[BaseHTTPRequestHandler]:
    """Return what answers requests for a predictor."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(200 if self.path.startswith("/v2/health/") else 404, {}, "")

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path not in (f"/v1/models/{model}:explain", f"/v2/models/{model}/explain"):
                self._answer(404, {"error": f"an explainer has no {self.path}"}, "")
                return
            row = asked["instances"][0] if "instances" in asked else asked["inputs"][0]["data"]
            whole, revision = self._ask(row)
            without = [[0 if place == at else number for at, number in enumerate(row)] for place in range(len(row))]
            found = [whole - self._ask(each)[0] for each in without]
            self._answer(200, {"explanations": [found], "headers": dict(self.headers.items())}, revision)

        def _ask(self, row: list[float]) -> tuple[float, str]:
            """Return the sum of the predictor's outputs, and its revision."""
            tensor = {"name": "x", "datatype": "FP32", "shape": [1, len(row)], "data": row}
            connection = http.client.HTTPConnection(predictor, timeout=30)
            try:
                body = json.dumps({"inputs": [tensor]})
                connection.request("POST", f"/v2/models/{model}/infer", body, {"content-type": "application/json"})
                answer = connection.getresponse()
                outputs = json.loads(answer.read()).get("outputs", [{"data": []}])
                return sum(outputs[0]["data"]), answer.headers.get("fairlead-revision", "")
            finally:
                connection.close()

        def _answer(self, status: int, content: dict[str, Any], revision: str) -> None:
            body = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            if revision:
                self.send_header("fairlead-revision", revision)
            self.end_headers()
            self.wfile.write(body)

    return Handler


def main() -> None:
    """Serve until it is ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--address", required=True)
    parser.add_argument("--http_port", type=int, required=True)
    parser.add_argument("--model_name", required=True)
    parser.add_argument("--predictor_host", required=True)
    options = parser.parse_args()
    of_predictor = handler(options.model_name, options.predictor_host)
    ThreadingHTTPServer((options.address, options.http_port), of_predictor).serve_forever()


if __name__ == "__main__":
    main()
