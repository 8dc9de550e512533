"""Answers that come in pieces: chunked, told when the client is slow, cancelled when it has gone."""

import asyncio
from collections.abc import AsyncIterator

import pytest_asyncio

from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.message import BodyWriter, Response
from tests.serving_runtime._support.http_listener import GET, Desk, Served, post, serving, until


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Served[Desk]]:
    async with serving(Desk(), HttpLimits()) as everything:
        yield everything


class Source:
    """A body that the test writes."""

    writer: BodyWriter
    paused = False

    def begin(self, writer: BodyWriter) -> None:
        self.writer = writer

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False


async def begun(served: Served[Desk]) -> Source:
    source = Source()
    (await served.application.next()).reply(Response(200, b"X: y\r\n", (), 0, source))
    return source


async def test_pieces_go_out_as_they_come_and_the_connection_is_kept(served: Served[Desk]) -> None:
    client = await served.client(post(b"") + GET)
    source = await begun(served)
    status, headers = await client.head()
    assert (status, headers) == (200, {"x": "y", "transfer-encoding": "chunked"})
    for piece in (b"one", b"two" * 100):
        source.writer.write(piece)
        assert await client.chunk() == piece
    source.writer.write(b"")
    source.writer.end()
    assert await client.chunk() == b""
    assert (await client.answer())[2] == b"/now "


async def test_a_source_is_told_when_its_client_does_not_read(served: Served[Desk]) -> None:
    client = await served.client(post(b""))
    source = await begun(served)
    pieces = 0
    while not source.paused:
        source.writer.write(bytes(100_000))
        pieces += 1
    assert source.writer.buffered_bytes > 0
    await client.head()
    for _ in range(pieces):
        assert len(await client.chunk()) == 100_000
    await until(lambda: not source.paused)
    source.writer.end()
    assert await client.chunk() == b""


async def test_a_lost_connection_cancels_the_request_whose_pieces_it_was_sent(served: Served[Desk]) -> None:
    client = await served.client(post(b""))
    ticket = await served.application.next()
    source = Source()
    ticket.reply(Response(200, b"", (), 0, source))
    await client.head()
    client.writer.transport.abort()
    await asyncio.wait_for(ticket.cancelled.wait(), 10)
    source.writer.write(b"to nobody")
    source.writer.end()


async def test_draining_lets_the_pieces_end(served: Served[Desk]) -> None:
    client = await served.client(post(b""))
    source = await begun(served)
    await client.head()
    served.listener.stop_accepting()
    assert served.listener.busy
    source.writer.write(b"last")
    source.writer.end()
    assert [await client.chunk(), await client.chunk()] == [b"last", b""]
    await asyncio.wait_for(served.listener.drained(), 10)


async def test_a_request_behind_the_pieces_is_answered_while_draining(served: Served[Desk]) -> None:
    client = await served.client(post(b"") + GET)
    ticket = await served.application.next()
    connection = await served.connection()
    await until(lambda: bool(connection._waiting))
    served.listener.stop_accepting()
    source = Source()
    ticket.reply(Response(200, b"", (), 0, source))
    assert "connection" not in (await client.head())[1]
    source.writer.end()
    assert await client.chunk() == b""
    _, headers, body = await client.answer()
    assert (headers["connection"], body) == ("close", b"/now ")
    assert await client.ended()


async def test_a_client_of_http_1_0_gets_no_chunks_but_the_end_of_the_connection(served: Served[Desk]) -> None:
    client = await served.client(b"POST /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    source = await begun(served)
    assert (await client.head())[1] == {"x": "y", "connection": "close"}
    source.writer.write(b"one")
    source.writer.write(b"two")
    source.writer.end()
    assert await asyncio.wait_for(client.reader.read(), 10) == b"onetwo"
