"""The relay as it runs: a process of its own, in its sandbox."""

import socket
import threading
import time
from pathlib import Path

from integrations.relay.start import Target
from serving_runtime.shared.egress import networks
from tests.integrations._support.relays import connected, echo, received, relaying, serving

LOOPBACK = networks("127.0.0.0/8")


def test_bytes_go_both_ways_and_each_end_is_told(tmp_path: Path) -> None:
    sent = bytes(range(256)) * 40_000  # more than all buffers on the way together
    with (
        serving(echo) as port,
        relaying(tmp_path, Target("localhost", port, LOOPBACK)) as path,
        connected(path) as client,
    ):
        sending = threading.Thread(target=lambda: (client.sendall(sent), client.shutdown(socket.SHUT_WR)))
        sending.start()
        assert received(client) == sent + b"end"
        sending.join()


def test_a_receiver_that_reads_nothing_holds_up_the_sender(tmp_path: Path) -> None:
    """What is on the way is bounded by the kernel's buffers and one chunk."""
    done = threading.Event()
    with (
        serving(lambda _: done.wait(20) and None) as port,
        relaying(tmp_path, Target("127.0.0.1", port, LOOPBACK)) as path,
        connected(path) as client,
    ):
        client.settimeout(1)
        accepted = 0
        try:
            while accepted < 64 << 20:
                accepted += client.send(bytes(1 << 16))
        except TimeoutError:
            pass
        done.set()
    assert accepted < 32 << 20


def test_an_end_of_the_server_reaches_the_client(tmp_path: Path) -> None:
    with (
        serving(lambda connection: connection.sendall(b"bye")) as port,
        relaying(tmp_path, Target("127.0.0.1", port, LOOPBACK)) as path,
        connected(path) as client,
    ):
        assert received(client) == b"bye"


def test_a_connection_that_nobody_uses_is_closed(tmp_path: Path) -> None:
    with (
        serving(echo) as port,
        relaying(tmp_path, Target("127.0.0.1", port, LOOPBACK), idle_s=0.2) as path,
        connected(path) as client,
    ):
        client.sendall(b"x")
        assert client.recv(1) == b"x"
        began = time.monotonic()
        received(client)
    assert time.monotonic() - began < 10


def test_what_cannot_be_reached_is_closed_at_once_and_logged_once(tmp_path: Path) -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # nothing listens there
        port = nobody.getsockname()[1]
        with relaying(tmp_path, Target("127.0.0.1", port, LOOPBACK)) as path:
            for _ in range(3):
                with connected(path) as client:
                    assert received(client) == b""
    assert (tmp_path / "relay.log").read_text().splitlines() == [
        f"127.0.0.1:{port} cannot be reached: 127.0.0.1: Connection refused"
    ]


def test_a_socket_is_for_its_user_alone_and_another_connection_waits_for_its_relay(tmp_path: Path) -> None:
    with serving(echo) as port, relaying(tmp_path, Target("127.0.0.1", port, LOOPBACK)) as path:
        assert path.stat().st_mode & 0o777 == 0o600
        with connected(path) as one, connected(path) as other:
            for client in (other, one):
                client.sendall(b"x")
                assert client.recv(1) == b"x"
