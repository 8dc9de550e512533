"""Kubernetes API servers of a few lines, for what a real one does rarely or slowly."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Answer = Callable[["Handler"], None]


def kubeconfig(folder: Path, port: int) -> Path:
    """Write a kubeconfig for a server on this port, and return it."""
    place = folder / "kubeconfig"
    content = {
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": f"http://127.0.0.1:{port}"}}],
        "users": [{"name": "test", "user": {}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    place.write_text(json.dumps(content))
    return place


class Handler(BaseHTTPRequestHandler):
    """Hands every request to the server's answer; `body` is what came with it."""

    protocol_version = "HTTP/1.1"
    server: "ApiServer"
    body: bytes

    def do_GET(self) -> None:
        self.body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.answer(self)

    do_POST = do_PATCH = do_GET  # noqa: N815 - the library's names

    def say(self, status: int, content: Any) -> None:
        """Answer with JSON."""
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


class ApiServer(ThreadingHTTPServer):
    daemon_threads = True
    answer: Answer


@contextmanager
def api_server(folder: Path, answer: Answer) -> Iterator[Path]:
    """Run a server until the block ends; yields the kubeconfig for it, which is written into `folder`."""
    server = ApiServer(("127.0.0.1", 0), Handler)
    server.answer = answer
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield kubeconfig(folder, server.server_port)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
