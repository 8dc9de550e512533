"""Clients that take nothing, or are silent, are given up; those that do either in their own time are not."""

import asyncio
from collections.abc import Callable

import pytest

from serving_runtime.protocol.grpc.on_http2 import lifetime
from serving_runtime.protocol.grpc.on_http2.lifetime import Lifetime
from serving_runtime.protocol.grpc.settings import GrpcSettings
from serving_runtime.protocol.http2 import frames
from tests.serving_runtime._support.http2_peer import HEADERS, Host, Peer, Slow


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - of timers
            await asyncio.sleep(0.005)


def watched(peer: Peer, **settings: int | bool) -> Lifetime:
    chosen = GrpcSettings(**settings)  # type: ignore[arg-type]
    return Lifetime(peer.connection, chosen, asyncio.get_running_loop())


def pings(peer: Peer) -> int:
    return sum(frame.kind == frames.PING for frame in peer.received())


async def test_a_client_that_takes_nothing_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime, "STUCK_S", 0.02)
    peer = Peer()
    peer.transport.full = True
    peer.transport.write(b"unread")
    watched(peer)
    await until(lambda: peer.transport.closed)


async def test_a_client_that_takes_a_little_each_time_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifetime, "STUCK_S", 0.02)
    peer = Peer()
    left = iter(range(10, 0, -1))
    looked: list[int] = []

    def unwritten() -> int:
        looked.append(next(left))
        return looked[-1]

    peer.transport.get_write_buffer_size = unwritten  # type: ignore[method-assign]
    life = watched(peer)
    await until(lambda: len(looked) >= 8)
    assert not peer.transport.closed
    life.end()


async def test_pings_that_nothing_was_sent_between_strike() -> None:
    peer = Peer()
    life = peer.host.lifetime = watched(peer, max_ping_strikes=2)
    ping = frames.frame(frames.PING, 0, 0, b"12345678")
    for _ in range(20):  # with answers in between a client may ping as it likes
        peer.send(ping)
        assert peer.received()[-1].flags == frames.ACK
        peer.ask(b"x")
        peer.received()
    peer.send(ping, ping, ping)
    assert not peer.transport.closed
    peer.send(ping)
    assert peer.farewell() == (frames.ErrorCode.ENHANCE_YOUR_CALM, "too_many_pings")
    life.end()


async def test_a_silent_client_is_pinged_only_while_it_has_calls() -> None:
    idle, busy = Peer(), Peer(Host(Slow))
    busy.ask()
    lives = [watched(peer, keepalive_time_ms=5, keepalive_timeout_ms=20_000) for peer in (idle, busy)]
    await until(lambda: pings(busy) > 0)
    assert pings(idle) == 0
    for life in lives:
        life.end()


async def test_pings_in_a_row_have_their_number_until_something_is_sent() -> None:
    peer = Peer(Host(Slow))
    peer.ask()
    life = watched(peer, keepalive_time_ms=1, keepalive_timeout_ms=1000, max_pings_without_data=3)
    answer = frames.frame(frames.PING, frames.ACK, 0, bytes(8))

    def answered() -> int:
        found = pings(peer)
        peer.send(*[answer] * found)
        return found

    for _ in range(3):
        await until(lambda: answered() > 0)
    assert not life._may_ping()
    peer.host.streams[0].send_headers(HEADERS)
    assert life._may_ping()
    life.end()


async def test_a_client_that_does_not_answer_is_given_up() -> None:
    peer = Peer(Host(Slow))
    peer.ask()
    watched(peer, keepalive_time_ms=5, keepalive_timeout_ms=5)
    await until(lambda: peer.transport.closed)


async def test_an_old_connection_is_drained_and_then_ended() -> None:
    peer = Peer(Host(Slow))
    peer.ask()
    watched(peer, max_connection_age_ms=5, max_connection_age_grace_ms=5)
    await until(lambda: peer.transport.closed)
    assert [frame.kind for frame in peer.received()][:2] == [frames.GOAWAY, frames.PING]
