"""What one client may do to a connection, and when it is told to go."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.frames import DATA, ErrorCode
from serving_runtime.protocol.http2.headers.blocks import encode
from serving_runtime.protocol.http2.limits import Patience
from tests.serving_runtime._support.http2_peer import HEADERS, REQUEST, TRAILERS, Host, Peer, Slow, headers

MOST = 10_000
"""Frames; far more than any client is borne with, far less than would take long."""


def numbers() -> Iterator[int]:
    return itertools.count(1, 2)


def rapid_reset() -> Iterator[bytes]:
    for number in numbers():
        yield headers(number, end=True) + frames.rst_stream(number, ErrorCode.CANCEL)


def reset_by_a_mistake() -> Iterator[bytes]:
    for number in numbers():
        yield headers(number) + frames.window_update(number, 0)


def pings() -> Iterator[bytes]:
    return itertools.repeat(frames.frame(frames.PING, 0, 0, bytes(8)))


def settings() -> Iterator[bytes]:
    return itertools.repeat(frames.settings({frames.INITIAL_WINDOW_SIZE: 1}))


def window_updates() -> Iterator[bytes]:
    return itertools.repeat(frames.window_update(0, 1))


def window_updates_of_a_stream() -> Iterator[bytes]:
    yield headers(1)
    yield from itertools.repeat(frames.window_update(1, 1))


def priorities() -> Iterator[bytes]:
    return itertools.repeat(frames.frame(frames.PRIORITY, 0, 1, bytes(5)))


def empty_content() -> Iterator[bytes]:
    yield headers(1)
    yield from itertools.repeat(frames.frame(DATA, 0, 1))


def empty_continuations() -> Iterator[bytes]:
    yield frames.frame(frames.HEADERS, 0, 1, encode(REQUEST))
    yield from itertools.repeat(frames.frame(frames.CONTINUATION, 0, 1))


def continuations() -> Iterator[bytes]:
    yield frames.frame(frames.HEADERS, 0, 1, encode(REQUEST))
    yield from itertools.repeat(frames.frame(frames.CONTINUATION, 0, 1, encode([(b"x", bytes(1000))])))


def unknown_frames() -> Iterator[bytes]:
    return itertools.repeat(frames.frame(0xFA, 0, 0, b"?"))


def streams_that_are_refused() -> Iterator[bytes]:
    for number in numbers():
        yield headers(number)


def padding() -> Iterator[bytes]:
    yield headers(1)
    yield from itertools.repeat(frames.frame(DATA, frames.PADDED, 1, b"\xff" + bytes(255)))


FLOODS = [
    rapid_reset,
    reset_by_a_mistake,
    pings,
    settings,
    window_updates,
    window_updates_of_a_stream,
    priorities,
    empty_content,
    empty_continuations,
    continuations,
    unknown_frames,
    streams_that_are_refused,
    padding,
]


@pytest.mark.parametrize("flood", FLOODS, ids=lambda flood: flood.__name__.replace("_", " "))
async def test_a_flood_ends_the_connection(flood: Callable[[], Iterator[bytes]]) -> None:
    host = Host(Slow)
    peer = Peer(host)
    for piece in itertools.islice(flood(), MOST):
        peer.send(piece)
        if peer.transport.closed:
            break
    farewell = peer.farewell()
    assert farewell is not None, f"{MOST} frames were borne"
    assert farewell[0] is ErrorCode.ENHANCE_YOUR_CALM
    assert not peer.connection.streams


async def test_a_client_that_is_sent_much_may_widen_its_windows_as_often() -> None:
    peer = Peer(Host(Slow), {frames.INITIAL_WINDOW_SIZE: 1})
    peer.ask()
    peer.host.streams[0].answer(HEADERS, bytes(MOST), TRAILERS)
    for _ in range(MOST):
        peer.send(frames.window_update(1, 1), frames.window_update(0, 1))
    assert not peer.transport.closed
    assert sum(len(frame.payload) for frame in peer.received() if frame.kind == DATA) == MOST


async def test_a_client_whose_calls_are_answered_may_cancel_some() -> None:
    peer = Peer()
    for _ in range(MOST):
        peer.ask(b"x")
        number = peer.begin()
        peer.send(frames.rst_stream(number, ErrorCode.CANCEL))
        peer.received()
    assert not peer.transport.closed


def test_patience_grows_again_with_time() -> None:
    patience = Patience(0.0)
    assert sum(patience.spend(0.0, 0) for _ in range(MOST)) == 2000
    patience = Patience(0.0)
    assert all(patience.spend(second / 100, 0) for second in range(MOST))


async def test_headers_larger_than_the_limit_are_refused_in_one_frame_or_many() -> None:
    peer = Peer()
    block = encode([*REQUEST, *[(b"x-%d" % number, bytes(1000)) for number in range(70)]])
    pieces = [block[at : at + 16_000] for at in range(0, len(block), 16_000)]
    peer.send(frames.frame(frames.HEADERS, 0, 1, pieces[0]))
    for piece in pieces[1:]:
        peer.send(frames.frame(frames.CONTINUATION, 0, 1, piece))
    farewell = peer.farewell()
    assert farewell is not None
    assert farewell[0] is ErrorCode.ENHANCE_YOUR_CALM


async def test_a_client_that_does_not_read_is_not_listened_to_either(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = Peer(settings={frames.INITIAL_WINDOW_SIZE: 1 << 24})
    peer.transport.full = True
    ping = frames.frame(frames.PING, 0, 0, bytes(8))
    peer.ask(bytes(1000))
    peer.send(ping * 100)
    assert not peer.transport.reading_paused
    monkeypatch.setattr("serving_runtime.protocol.http2.connection.DEAF_BYTES", 2000)
    peer.send(ping * 100)
    assert peer.transport.reading_paused
    peer.transport.empty()
    assert not peer.transport.reading_paused


async def test_content_waits_in_its_streams_while_the_socket_is_full() -> None:
    peer = Peer(Host(Slow), {frames.INITIAL_WINDOW_SIZE: 1 << 24})
    peer.send(frames.window_update(0, 1 << 24))
    peer.transport.full = True
    for _ in range(5):
        peer.ask()
    for stream in peer.host.streams:
        stream.answer(HEADERS, bytes(1 << 20), TRAILERS)
    assert peer.transport.buffered_bytes < 2 << 20
    assert peer.connection.out.unsent_bytes >= 3 << 20


async def test_requests_wait_while_too_much_is_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving_runtime.protocol.http2.outbound_flow.MAX_UNSENT_BYTES", 1000)
    peer = Peer(Host(Slow), {frames.INITIAL_WINDOW_SIZE: 0})
    first = peer.ask()
    peer.host.streams[0].answer(HEADERS, bytes(1001), TRAILERS)
    peer.ask()
    assert not peer.host.streams[1].complete
    peer.send(frames.window_update(first, 1))
    assert peer.host.streams[1].complete
    peer.ask()
    assert peer.host.streams[2].complete


async def test_requests_that_wait_go_on_when_the_unread_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("serving_runtime.protocol.http2.outbound_flow.MAX_UNSENT_BYTES", 1000)
    peer = Peer(Host(Slow), {frames.INITIAL_WINDOW_SIZE: 0})
    first = peer.ask()
    peer.host.streams[0].answer(HEADERS, bytes(1001), TRAILERS)
    peer.ask()
    peer.send(frames.rst_stream(first, ErrorCode.CANCEL))
    assert peer.host.streams[1].complete
