"""Web servers that models are fetched from."""

import hashlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[[BaseHTTPRequestHandler], None]


class _Handler(BaseHTTPRequestHandler):
    server: "WebServer"

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.answers[self.path](self)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def web_server() -> Iterator["WebServer"]:
    """Give a web server on a free port of the loopback address, until the block ends."""
    server = WebServer(("127.0.0.1", 0), _Handler)
    server.answers, server.asked = {}, []
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class WebServer(ThreadingHTTPServer):
    """Answers each path as `answers` says, and notes what was asked for."""

    daemon_threads = True
    answers: dict[str, Answer]
    asked: list[str]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def gives(self, path: str, content: bytes, *, length: int | None = None) -> str:
        """Answer `path` with bytes; `length` is what the header says. Returns the URI."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(200)
            handler.send_header("Content-Length", str(len(content) if length is None else length))
            handler.end_headers()
            handler.wfile.write(content)

        self.answers[path] = answer
        return f"{self.url}{path}"

    def says(self, path: str, status: int, **headers: str) -> str:
        """Answer `path` with a status and no body. Returns the URI."""

        def answer(handler: BaseHTTPRequestHandler) -> None:
            handler.send_response(status)
            for name, value in {"Content-Length": "0", **headers}.items():
                handler.send_header(name.replace("_", "-"), value)
            handler.end_headers()

        self.answers[path] = answer
        return f"{self.url}{path}"


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
