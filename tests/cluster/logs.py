"""The endpoint of a node that the API server asks for what containers say: `/containerLogs/NAMESPACE/POD/CONTAINER`."""

import ssl
import threading
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

Said = Callable[[str, str, str, bool], bytes | None]
"""Returns what a container of a pod says, given namespace, pod, container and whether its process before is meant."""


class LogsEndpoint:
    """Serves on a free port of 127.0.0.1."""

    def __init__(self, said: Said, context: ssl.SSLContext) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _answer(self, said)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="kubelet-logs")

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _answer(asked: BaseHTTPRequestHandler, said: Said) -> None:
    parts = urlsplit(asked.path)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    words = parts.path.strip("/").split("/")
    content = None
    if len(words) == 4 and words[0] == "containerLogs":
        content = said(words[1], words[2], words[3], query.get("previous") == "true")
    status = HTTPStatus.NOT_FOUND if content is None else HTTPStatus.OK
    lines = (content or b"").splitlines(keepends=True)
    body = b"".join(lines[-int(query.get("tailLines", len(lines) or 1)) :])
    body = body[: int(query.get("limitBytes", len(body)))]
    asked.send_response(status)
    asked.send_header("Content-Type", "text/plain")
    asked.send_header("Content-Length", str(len(body)))
    asked.end_headers()
    asked.wfile.write(body)
