"""The endpoint of a node that the API server asks for what containers say, and lets commands be run in them by:
`/containerLogs/NAMESPACE/POD/CONTAINER` and `/exec/NAMESPACE/POD/CONTAINER`; and that who measures pods asks for what
containers take of CPU and memory: `/metrics/resource`.
"""

import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from subprocess import Popen
from urllib.parse import parse_qs, urlsplit

from tests.cluster._support.node import executing

Said = Callable[[str, str, str, bool], bytes | None]
"""Returns what a container of a pod says, given namespace, pod, container and whether its process before is meant."""
Begin = Callable[[str, str, str, Sequence[str]], "Popen[bytes] | None"]
"""Starts a command in a container of a pod, its three streams being pipes; None where there is no such container."""
Measured = Callable[[], bytes]
"""Returns what the node's containers take, in Prometheus' text format."""


class KubeletServer:
    """Serves on a free port of an address."""

    def __init__(self, said: Said, begin: Begin, measured: Measured, host: str, context: ssl.SSLContext) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                _answer(self, said, begin, measured)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        class Server(ThreadingHTTPServer):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        self._server = Server((host, 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), name="kubelet-server")

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def _answer(asked: BaseHTTPRequestHandler, said: Said, begin: Begin, measured: Measured) -> None:
    parts = urlsplit(asked.path)
    query = parse_qs(parts.query)
    match parts.path.strip("/").split("/"):
        case ["containerLogs", namespace, pod, container]:
            content = said(namespace, pod, container, query.get("previous") == ["true"])
            _send(asked, content, {name: int(values[-1]) for name, values in query.items() if values[-1].isdigit()})
        case ["exec", namespace, pod, container]:
            process = begin(namespace, pod, container, query["command"])
            if process is None:
                _send(asked, None, {})
            else:
                executing.serve(asked, process, takes_input="input" in query)
        case ["metrics", "resource"]:
            _send(asked, measured(), {})
        case _:
            _send(asked, None, {})


def _send(asked: BaseHTTPRequestHandler, content: bytes | None, limits: dict[str, int]) -> None:
    status = HTTPStatus.NOT_FOUND if content is None else HTTPStatus.OK
    lines = (content or b"").splitlines(keepends=True)
    body = b"".join(lines[-limits.get("tailLines", len(lines) or 1) :])
    body = body[: limits.get("limitBytes", len(body))]
    asked.send_response(status)
    asked.send_header("Content-Type", "text/plain")
    asked.send_header("Content-Length", str(len(body)))
    asked.end_headers()
    asked.wfile.write(body)
