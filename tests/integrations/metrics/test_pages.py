"""Pages of others, who may send too much, or never come to an end, or nothing."""

import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from common.errors import Unavailable
from integrations.metrics import pages
from tests.servers.parts import free_port

Serve = Callable[[int, Iterator[bytes]], str]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Give a maker of servers, each with one answer; returns the address of its page."""
    servers = []

    def make(status: int, parts: Iterator[bytes]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(status)
                self.end_headers()
                try:
                    for part in parts:
                        self.wfile.write(part)
                except OSError:  # who read it has enough
                    return

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}/metrics"

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_page_is_read_whole(serve: Serve) -> None:
    assert pages.read(serve(200, iter([b"a 1\n", b"b 2\n"])), timeout_s=60) == "a 1\nb 2\n"


def test_a_page_without_an_end_is_given_up(serve: Serve) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 65_536

    with pytest.raises(Unavailable, match="more than 8 MiB"):
        pages.read(serve(200, endless()), timeout_s=60)


def test_a_page_that_drips_is_given_up_at_its_deadline(serve: Serve) -> None:
    stop = threading.Event()

    def dripping() -> Iterator[bytes]:
        while not stop.wait(0.02):
            yield b"x"

    began = time.monotonic()
    with pytest.raises(Unavailable, match="take too long"):
        pages.read(serve(200, dripping()), timeout_s=0.5)
    stop.set()
    assert time.monotonic() - began < 30


def test_an_error_in_the_place_of_a_page_is_told(serve: Serve) -> None:
    with pytest.raises(Unavailable, match="503"):
        pages.read(serve(503, iter([])), timeout_s=60)


def test_nobody_there_is_told() -> None:
    with pytest.raises(Unavailable, match="cannot be read"):
        pages.read(f"http://127.0.0.1:{free_port()}/metrics")
