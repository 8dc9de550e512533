"""A receiver of events, over real HTTP."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Receiver(ThreadingHTTPServer):
    """Keeps what was posted to it, in `posts`; answers with the statuses in `answers` first, then with 204."""

    daemon_threads = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        if context is not None:  # the handshake is for the connection's thread, where it may take its time
            self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.posts: list[tuple[Message, bytes]] = []
        self.answers: list[int] = []
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/events"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            self.server.posts.append((self.headers, body))
            status = self.server.answers.pop(0) if self.server.answers else 204
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def receiving(context: ssl.SSLContext | None = None) -> Iterator[Receiver]:
    """Yield one that runs; over TLS where a context is given."""
    with Receiver(context) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
