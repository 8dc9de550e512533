"""Clients that begin something and do not go on: a connection, a header block, a request, reading an answer."""

from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.headers.blocks import encode
from tests.serving_runtime._support.http2_peer import REQUEST, Host, Peer, Slow
from tests.serving_runtime._support.http_listener import Desk, post, serving, until

LONG_S, SHORT_S = 31, 20


def now(peer: Peer) -> float:
    return peer.connection.heard_at


def wait(peer: Peer, seconds: int) -> None:
    """Let so much time pass, looked at each second as a server does."""
    began = now(peer)
    for second in range(1, seconds + 1):
        peer.connection.sweep(began + second)


async def test_a_connection_that_does_not_begin_is_ended() -> None:
    peer = Peer(greets=False)
    wait(peer, SHORT_S)
    assert not peer.transport.closed
    wait(peer, LONG_S + SHORT_S)
    assert peer.connection.over
    assert "preface" in (peer.farewell() or (0, ""))[1]


async def test_a_header_block_that_does_not_end_ends_the_connection() -> None:
    peer = Peer()
    peer.send(frames.frame(frames.HEADERS, 0, 1, encode(REQUEST)))
    wait(peer, SHORT_S)
    assert not peer.connection.over
    wait(peer, LONG_S + SHORT_S)
    assert peer.farewell() == (frames.ErrorCode.ENHANCE_YOUR_CALM, "headers did not arrive in time")


async def test_a_request_that_does_not_end_is_reset_and_others_go_on() -> None:
    peer = Peer(Host())
    stalled = peer.begin()
    peer.send(frames.frame(frames.DATA, 0, stalled, bytes(16_000)))
    wait(peer, LONG_S + 2)
    assert peer.host.streams[0].gone
    assert frames.RST_STREAM in [frame.kind for frame in peer.received() if frame.stream_id == stalled]
    peer.ask(b"abc")
    assert not peer.connection.streams


async def test_a_request_that_comes_slowly_but_surely_is_waited_for() -> None:
    peer = Peer(Host(Slow))
    number = peer.begin()
    began = now(peer)
    for second in range(1, 90):
        peer.send(frames.frame(frames.DATA, 0, number, bytes(16_000)))
        peer.host.streams[0].grant(16_000)
        peer.connection.sweep(began + second)
    assert number in peer.connection.streams


async def test_a_client_that_may_send_nothing_is_not_blamed() -> None:
    """It waits for the server to widen its window."""
    peer = Peer(Host(Slow))
    number = peer.begin()
    for _ in range(4):
        peer.send(frames.frame(frames.DATA, 0, number, bytes(min(16_384, peer.host.streams[0].window_bytes))))
    assert peer.host.streams[0].window_bytes <= 0
    wait(peer, 10 * LONG_S)
    assert number in peer.connection.streams


async def test_an_answer_that_nobody_reads_is_given_up() -> None:
    peer = Peer(settings={frames.INITIAL_WINDOW_SIZE: 10})
    number = peer.ask(bytes(16_000))
    assert number in peer.connection.streams
    wait(peer, LONG_S + 2)
    assert not peer.connection.streams


async def test_a_request_that_waits_for_its_model_is_not_ended() -> None:
    peer = Peer(Host(Slow))
    number = peer.ask(b"abc")
    wait(peer, 10 * LONG_S)
    assert number in peer.connection.streams


async def test_a_body_that_stalls_is_given_up_however_much_of_it_has_come() -> None:
    body = bytes(4 * 2**20)
    async with serving(Desk(), HttpLimits()) as served:
        client = await served.client(post(body)[:-1])
        connection = await served.connection()
        await until(lambda: connection._reader.received_bytes == len(body) - 1)
        began = served.listener.now
        for second in range(1, LONG_S + 3):
            connection.sweep(began + second)
        status, _, answer = await client.answer()
        assert (status, answer) == (408, b'{"error":"the request did not arrive in time"}')
        assert served.listener.memory.held_bytes == 0


async def test_endless_trailers_are_refused() -> None:
    async with serving(Desk(), HttpLimits()) as served:
        begin = b"POST /later HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
        client = await served.client(begin)
        await served.connection()
        client.send(b"".join(b"X-%d: %s\r\n" % (number, bytes(100).hex().encode()) for number in range(3000)))
        status, _, _ = await client.answer()
        assert status in (400, 431)
