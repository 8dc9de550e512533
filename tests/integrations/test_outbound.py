"""Requests to addresses that callers chose: where they may go, and how long they take at most."""

import ipaddress
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import pytest

from common.errors import Unavailable
from integrations.outbound import get, post

T = TypeVar("T")


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[64:ff9b::a00:1]",
        "[2002:a00:1::]",
        "0.0.0.0",
        "224.0.0.1",
        "2130706433",
    ],
)
def test_addresses_that_are_not_public_are_refused(host: str) -> None:
    with pytest.raises(Unavailable, match="not a public address"):
        post(f"http://{host}:9/", b"", {}, allowed=(), timeout_s=1)


def test_an_allowed_network_is_tried_and_the_failure_told() -> None:
    with pytest.raises(Unavailable, match="did not answer"):
        post("http://127.0.0.1:1/", b"", {}, allowed=(ipaddress.ip_network("127.0.0.0/8"),), timeout_s=5)


def test_a_name_that_is_nowhere_is_told() -> None:
    with pytest.raises(Unavailable, match="cannot be resolved"):
        post("http://nowhere.invalid/", b"", {}, allowed=(), timeout_s=5)


LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"),)


@contextmanager
def dripping(head: bytes = b"", *, reads: bool = True) -> Iterator[int]:
    """Give the port of a server that sends `head`, and then a byte again and again, which no answer is made of."""
    over = threading.Event()

    def serve() -> None:
        connection, _ = listener.accept()
        with suppress(OSError), connection:
            if reads:
                connection.recv(65536)
                connection.sendall(head)
            while not over.wait(0.02):
                if reads:
                    connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        over.set()
        thread.join(10)


def timed(call: Callable[[], T]) -> tuple[T, float]:
    began = time.monotonic()
    return call(), time.monotonic() - began


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_answer_that_never_begins_ends_at_the_time_out(scheme: str) -> None:
    head = b"HTTP/1.1 200 OK\r\nX-Slow: " if scheme == "http" else b""
    began = time.monotonic()
    with dripping(head) as port, pytest.raises(Unavailable, match="did not answer"):
        post(f"{scheme}://127.0.0.1:{port}/", b"{}", {}, allowed=LOOPBACK, timeout_s=0.4)
    assert time.monotonic() - began < 5


def test_a_server_that_reads_nothing_ends_at_the_time_out() -> None:
    with dripping(reads=False) as port, pytest.raises(Unavailable, match=r"did not answer within 0.4 s"):
        post(f"http://127.0.0.1:{port}/", b"x" * 30_000_000, {}, allowed=LOOPBACK, timeout_s=0.4)


def test_a_body_that_never_ends_is_left_when_its_time_is_over() -> None:
    head = b"HTTP/1.1 202 Accepted\r\nContent-Length: 100000\r\n\r\n"
    with dripping(head) as port:
        (status, text), took_s = timed(
            lambda: post(f"http://127.0.0.1:{port}/", b"", {}, allowed=LOOPBACK, timeout_s=0.4)
        )
    assert (status, set(text)) == (202, {"x"})
    assert took_s < 5
    with dripping(head.replace(b"202 Accepted", b"200 OK")) as port, pytest.raises(Unavailable, match=r"within 0.4 s"):
        get(f"http://127.0.0.1:{port}/", allowed=LOOPBACK, timeout_s=0.4, most_bytes=1000)
