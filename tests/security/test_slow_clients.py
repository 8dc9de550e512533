"""Clients that keep a connection of the control plane's web server without ending a request."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn

from control_plane import http_protocol

HEAD_S, BODY_IDLE_S = 0.4, 0.4
PATIENCE_S = 30.0


@pytest.fixture(scope="module")
def server(django_db_setup: None) -> Iterator[int]:
    """Serve the control plane with short limits; yields its port."""
    from control_plane.asgi import application  # noqa: PLC0415 - needs Django's settings

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(http_protocol, "HEAD_S", HEAD_S)
        patch.setattr(http_protocol, "BODY_IDLE_S", BODY_IDLE_S)
        config = uvicorn.Config(
            application, http=http_protocol.HttpProtocol, log_level="critical", lifespan="off", timeout_keep_alive=1
        )
        running = uvicorn.Server(config)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            thread = threading.Thread(target=lambda: asyncio.run(running.serve([listener])), name="server")
            thread.start()
            yield listener.getsockname()[1]
            running.should_exit = True
            thread.join(PATIENCE_S)


def until_closed(client: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    received = b""
    while piece := client.recv(65536):
        received += piece
    return received


def one_response(client: socket.socket) -> bytes:
    """Return the response to `/healthz`."""
    received = b""
    while not received.endswith(b'{"live": true}'):
        received += client.recv(65536)
    return received


def connection(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)


@pytest.mark.parametrize("sent", [b"", b"GE", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: b"])
def test_a_head_that_does_not_end_is_answered_408(server: int, sent: bytes) -> None:
    with connection(server) as client:
        client.sendall(sent)
        assert until_closed(client).startswith(b"HTTP/1.1 408 ")


def test_a_head_that_drips_has_no_more_time(server: int) -> None:
    """The limit is for the whole head: each further byte gains nothing."""
    began = time.monotonic()
    with connection(server) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        client.settimeout(0.05)
        received = b""
        while time.monotonic() - began < PATIENCE_S:
            try:
                client.sendall(b"a")
                received = client.recv(1024)
                break
            except TimeoutError:
                continue
            except OSError:
                break
        assert received.startswith(b"HTTP/1.1 408 ") or not received
        assert time.monotonic() - began < PATIENCE_S


def test_a_head_without_an_end_is_refused_by_its_size(server: int) -> None:
    with connection(server) as client:
        try:
            client.sendall(b"GET / HTTP/1.1\r\nX-A: " + b"a" * (4 * http_protocol.HEAD_BYTES))
            answer = until_closed(client)
        except ConnectionError:
            return  # refused before all of it was sent
        assert answer.startswith(b"HTTP/1.1 431 ")


def test_a_body_that_stops_ends_the_connection(server: int) -> None:
    with connection(server) as client:
        client.sendall(
            b"POST /signin/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken="
        )
        assert until_closed(client).startswith(b"HTTP/1.1 408 ")


def test_a_slow_but_steady_body_is_read(server: int) -> None:
    with connection(server) as client:
        body = b"token=flt_x"
        client.sendall(
            b"POST /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        due = threading.Event()
        for number in range(len(body)):
            client.sendall(body[number : number + 1])
            due.wait(BODY_IDLE_S / 4)
        assert until_closed(client).startswith(b"HTTP/1.1 403 ")  # read whole, and refused as a form without a cookie


def test_blank_lines_after_a_response_keep_nothing_open(server: int) -> None:
    with connection(server) as client:
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert one_response(client).startswith(b"HTTP/1.1 200 ")
        client.sendall(b"\r\n")
        until_closed(client)


def test_several_requests_over_one_connection_are_answered(server: int) -> None:
    with connection(server) as client:
        for _ in range(3):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one_response(client).startswith(b"HTTP/1.1 200 ")
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 2)
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert until_closed(client).count(b"HTTP/1.1 200 ") == 3
