"""Bodies that are read past the parser: whole, aligned, with what follows them, on both kinds of event loop."""

import asyncio
import gc
import tracemalloc
from collections.abc import Awaitable, Callable

import numpy as np
import pytest
import uvloop

from serving_runtime.protocol.http.wire.connection import Connection
from serving_runtime.protocol.http.wire.large_body import WORTH_BYTES, LargeBody
from serving_runtime.protocol.http.wire.limits import HttpLimits
from tests.serving_runtime._support.http_listener import GET, Desk, Served, post, serving, until

BODY = np.random.default_rng(0).bytes(4 * 1024 * 1024)
LIMITS = HttpLimits(max_body_bytes=len(BODY))

Play = Callable[[Served[Desk]], Awaitable[None]]
On = Callable[[Play], None]


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def on_loop(request: pytest.FixtureRequest) -> On:
    """Return what plays a test against a server of its own."""

    async def whole(play: Play) -> None:
        async with serving(Desk(), LIMITS) as served:
            await play(served)

    def run(play: Play) -> None:
        with asyncio.Runner(loop_factory=request.param) as runner:
            runner.run(whole(play))

    return run


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that the sizes of all pieces go into that connections are handed as bytes."""
    sizes: list[int] = []
    data_received = Connection.data_received

    def counted(connection: Connection, data: bytes) -> None:
        sizes.append(len(data))
        data_received(connection, data)

    monkeypatch.setattr(Connection, "data_received", counted)
    return sizes


def test_a_large_body_is_whole_aligned_and_not_handed_over_in_pieces(on_loop: On, copied: list[int]) -> None:
    async def play(served: Served[Desk]) -> None:
        client = await served.client(post(BODY, "Inference-Header-Content-Length: 7") + GET + post(BODY[:9]))
        ticket = await served.application.next()
        assert ticket.body == BODY
        tensor = np.frombuffer(ticket.request.body, "u1", offset=ticket.request.body_offset + 7)
        whole = np.frombuffer(ticket.request.body, "u1")
        assert (tensor.ctypes.data - whole.ctypes.data) % 64 == 0
        ticket.answer()
        assert (await client.answer())[2] == b"/later " + BODY
        assert (await client.answer())[2] == b"/now "
        assert (await served.application.next()).body == BODY[:9]

    on_loop(play)
    assert sum(copied) < 512 * 1024  # what comes with the head, in one read


def test_one_large_body_after_another_on_one_connection(on_loop: On) -> None:
    async def play(served: Served[Desk]) -> None:
        client = await served.client()
        for size in (len(BODY), 10, WORTH_BYTES * 5, len(BODY) - 1, WORTH_BYTES * 2):
            client.send(post(BODY[:size], path="/now"))
            assert (await client.answer())[2] == b"/now " + BODY[:size]

    on_loop(play)


def test_a_client_that_expects_to_be_asked_for_a_large_body(on_loop: On, copied: list[int]) -> None:
    async def play(served: Served[Desk]) -> None:
        client = await served.client(post(BODY, "Expect: 100-continue", path="/now")[: -len(BODY)])
        assert await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 60) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.send(BODY)
        assert (await client.answer())[2] == b"/now " + BODY

    on_loop(play)
    assert sum(copied) < 1000  # the head and nothing else


def test_large_bodies_that_are_pipelined_are_answered_in_order(on_loop: On) -> None:
    async def play(served: Served[Desk]) -> None:
        client = await served.client(b"".join(post(BODY[number:]) for number in range(3)))
        for number in range(3):
            ticket = await served.application.next()
            assert ticket.body == BODY[number:]
            ticket.answer()
            assert (await client.answer())[2] == b"/later " + BODY[number:]

    on_loop(play)


def test_a_client_that_leaves_with_half_of_a_large_body_sent(on_loop: On) -> None:
    async def play(served: Served[Desk]) -> None:
        client = await served.client(post(BODY)[:-9])
        connection = await served.connection()
        await until(lambda: connection._reader.bytes_to_come == 9)
        assert connection.busy
        client.writer.close()
        await until(lambda: not served.listener._connections)
        assert served.application.tickets.empty()

    on_loop(play)


def test_what_clients_sent_that_left_is_freed_before_the_collector_comes(on_loop: On) -> None:
    async def play(served: Served[Desk]) -> None:
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(4):
            client = await served.client(post(BODY)[:-9])
            connection = await served.connection()
            await until(lambda found=connection: found._reader.bytes_to_come == 9)
            client.writer.close()
            await until(lambda: not served.listener._connections)
        client = connection = None  # type: ignore[assignment]
        served._clients.clear()
        await until(lambda: tracemalloc.get_traced_memory()[0] - before < len(BODY) // 2)

    gc.disable()
    tracemalloc.start()
    try:
        on_loop(play)
    finally:
        tracemalloc.stop()
        gc.enable()


def test_a_client_that_never_finishes_a_large_body_is_told_and_dropped(on_loop: On) -> None:
    async def play(served: Served[Desk]) -> None:
        client = await served.client(post(BODY)[:-9])
        connection = await served.connection()
        await until(lambda: connection._reader.bytes_to_come == 9)
        assert isinstance(connection._transport.get_protocol(), LargeBody)
        connection.sweep(served.listener.now + 10_000)
        assert (await client.answer())[0] == 408
        client.send(BODY[-9:] + GET)
        assert await client.ended()
        assert served.application.tickets.empty()

    on_loop(play)


def test_a_length_beside_chunks_is_refused(on_loop: On) -> None:
    async def play(served: Served[Desk]) -> None:
        client = await served.client(post(BODY, "Transfer-Encoding: chunked"))
        assert (await client.head())[0] == 400

    on_loop(play)
