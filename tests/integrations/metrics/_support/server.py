"""A server of the test in the place of Prometheus."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs

from integrations.metrics.prometheus import Prometheus


@dataclass
class Server:
    """Answers every query with the same; remembers what it was asked."""

    status: int = 200
    body: bytes = b""
    drip: bool = False
    url: str = ""
    asked: list[str] = field(default_factory=list)
    authorization: list[str | None] = field(default_factory=list)
    tenants: list[str | None] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)


@contextlib.contextmanager
def serving(server: Server) -> Iterator[Prometheus]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            server.asked += form["query"]
            server.authorization.append(self.headers.get("Authorization"))
            server.tenants.append(self.headers.get("X-Scope-OrgID"))
            self.send_response(server.status)
            self.send_header("Content-Length", str(len(server.body)))
            self.end_headers()
            with contextlib.suppress(OSError):
                if server.drip:
                    for byte in server.body:
                        self.wfile.write(bytes([byte]))
                        self.wfile.flush()
                        if server.let_go.wait(0.05):
                            return
                self.wfile.write(server.body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.02,))
        thread.start()
        server.url = f"http://127.0.0.1:{listening.server_port}/prefix"
        try:
            yield Prometheus(server.url, token="s3cret", timeout_s=5)
        finally:
            server.let_go.set()
            listening.shutdown()
            thread.join()


def success(kind: str, result: object) -> bytes:
    return json.dumps({"status": "success", "data": {"resultType": kind, "result": result}}).encode()
