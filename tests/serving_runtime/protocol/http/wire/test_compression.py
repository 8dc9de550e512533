"""Compressed bodies: what clients send, what they accept, and what would become too large."""

import gzip
import os
import zlib
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from serving_runtime.protocol.http.wire.compression import accepted, compress
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.message import Response
from tests.serving_runtime._support.http_listener import GET, Desk, Served, post, serving

LIMIT = 300_000

pytestmark = pytest.mark.feature("P16")


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Served[Desk]]:
    async with serving(Desk(), HttpLimits(max_body_bytes=LIMIT)) as everything:
        yield everything


@pytest.mark.parametrize(
    ("coding", "compress_body"),
    [
        pytest.param("gzip", gzip.compress, id="gzip"),
        pytest.param("GZip", gzip.compress, id="in any case"),
        pytest.param("deflate", zlib.compress, id="deflate"),
        pytest.param("identity", bytes, id="identity"),
    ],
)
async def test_a_compressed_body_arrives_as_it_was(served: Served[Desk], coding: str, compress_body) -> None:
    body = os.urandom(5000) + bytes(100_000)
    client = await served.client(post(compress_body(body), f"Content-Encoding: {coding}", path="/later"))
    ticket = await served.application.next()
    assert ticket.body == body
    ticket.reply(Response(200, b"", (b"yes",), 3))
    client.send(GET)
    assert [(await client.answer())[2] for _ in range(2)] == [b"yes", b"/now "]


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        pytest.param(gzip.compress(bytes(LIMIT + 1)), 413, b"larger than 300000 bytes", id="a byte too many"),
        pytest.param(gzip.compress(bytes(50_000_000)), 413, b"larger than 300000 bytes", id="a bomb"),
        pytest.param(gzip.compress(b"abc")[:-1], 400, b"ends too early", id="half of it"),
        pytest.param(b"plain text", 400, b"cannot be read", id="not compressed at all"),
        pytest.param(zlib.compress(b"abc"), 400, b"cannot be read", id="the other coding"),
        pytest.param(gzip.compress(b"abc") + b"more", 400, b"goes on after", id="more than it says"),
    ],
)
async def test_a_body_that_cannot_be_decompressed_is_refused(
    served: Served[Desk], body: bytes, status: int, sentence: bytes
) -> None:
    client = await served.client(post(body, "Content-Encoding: gzip"))
    found, headers, answer = await client.answer()
    assert (found, headers["connection"]) == (status, "close")
    assert sentence in answer
    assert await client.ended()


@pytest.mark.parametrize(
    ("accept", "coding"),
    [
        (b"gzip", b"gzip"),
        (b"deflate", b"deflate"),
        (b"gzip, deflate, br", b"gzip"),
        (b"gzip;q=0.5, deflate", b"deflate"),
        (b"*", b"gzip"),
        (b"gzip;q=0, *", b"deflate"),
        (b"identity, gzip;q=0.5", b""),
        (b"br", b""),
        (b"gzip;q=nonsense", b""),
        (b"", b""),
    ],
)
def test_the_coding_that_a_client_prefers(accept: bytes, coding: bytes) -> None:
    assert accepted(accept) == coding


@pytest.mark.parametrize("size", [2_000, 500_000], ids=["in the loop", "in a thread"])
@pytest.mark.parametrize(
    ("accept", "decompress"), [("gzip", gzip.decompress), ("deflate", zlib.decompress)], ids=["gzip", "deflate"]
)
async def test_an_answer_is_compressed_where_that_is_accepted(
    served: Served[Desk], size: int, accept: str, decompress
) -> None:
    client = await served.client(post(b"", f"Accept-Encoding: {accept}") + GET)
    tensors = np.zeros((size // 8, 2), "f4"), np.ones(3, bool), np.empty((0, 2), "i8")
    whole = b"".join(array.tobytes() for array in tensors)
    (await served.application.next()).reply(Response(200, b"X: y\r\n", tensors, len(whole)))
    status, headers, body = await client.answer()
    assert (status, headers["content-encoding"], headers["x"]) == (200, accept, "y")
    assert len(body) < len(whole)
    assert decompress(body) == whole
    assert (await client.answer())[2] == b"/now "


async def test_a_short_answer_and_one_that_nobody_wants_compressed_come_plain(served: Served[Desk]) -> None:
    client = await served.client(post(b"", "Accept-Encoding: gzip") + post(b"") + post(b"", "Accept-Encoding: br"))
    for content in (b"short", bytes(5000), bytes(5000)):
        (await served.application.next()).reply(Response(200, b"", (content,), len(content)))
        _, headers, body = await client.answer()
        assert "content-encoding" not in headers
        assert body == content


async def test_a_client_that_leaves_while_its_answer_is_compressed_hurts_nobody(served: Served[Desk]) -> None:
    client = await served.client(post(b"", "Accept-Encoding: gzip"))
    ticket = await served.application.next()
    content = os.urandom(3_000_000)
    ticket.reply(Response(200, b"", (content,), len(content)))
    client.writer.transport.abort()
    other = await served.client(GET)
    assert (await other.answer())[2] == b"/now "


def test_compressing_takes_whatever_has_a_buffer() -> None:
    chunks = [b"ab", bytearray(b"cd"), memoryview(b"ef"), np.array([1.5], "<f2"), np.array(7, "<u2")]
    assert gzip.decompress(compress(chunks, b"gzip")) == b"abcdef" + b"\x00\x3e" + b"\x07\x00"
