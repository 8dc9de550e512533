"""HTTP/1.1 as clients, honest and hostile, speak it; on real sockets, with an application that answers when told."""

import asyncio
import socket
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.protocol.http.wire.connection import Connection
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.listener import Listener
from tests.serving_runtime._support.http_listener import GET, Desk, Served, post, serving, until

LIMIT = 1000


@pytest_asyncio.fixture
async def served() -> AsyncIterator[Served[Desk]]:
    async with serving(Desk(), HttpLimits(max_body_bytes=LIMIT)) as everything:
        yield everything


@pytest.mark.parametrize(
    ("target", "status", "length"),
    [
        pytest.param(b"/now", 200, 5, id="an answer"),
        pytest.param(b"/missing", 404, len(b'{"error":"nothing here"}'), id="an error"),
        pytest.param(b"/broken", 500, len(b'{"error":"internal error"}'), id="a mistake of ours"),
    ],
)
async def test_head_is_answered_as_get_without_the_body(
    served: Served[Desk], target: bytes, status: int, length: int
) -> None:
    client = await served.client(b"HEAD %s HTTP/1.1\r\nHost: x\r\n\r\n" % target)
    head = await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 10)
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert b"Content-Length: %d\r\n" % length in head
    client.send(GET)
    assert (await client.answer())[2] == b"/now "


async def test_a_connection_is_kept_for_the_next_request(served: Served[Desk]) -> None:
    client = await served.client(GET)
    assert (await client.answer())[2] == b"/now "
    client.send(post(b"abc", path="/now"))
    status, headers, body = await client.answer()
    assert (status, body) == (200, b"/now abc")
    assert "connection" not in headers


async def test_pipelined_requests_are_answered_in_order(served: Served[Desk]) -> None:
    client = await served.client(post(b"1") + GET + post(b"2", path="/now") + post(b"3"))
    (await served.application.next()).answer()
    bodies = [(await client.answer())[2] for _ in range(3)]
    (await served.application.next()).answer()
    assert [*bodies, (await client.answer())[2]] == [b"/later 1", b"/now ", b"/now 2", b"/later 3"]


async def test_thousands_of_pipelined_requests_are_all_answered(served: Served[Desk]) -> None:
    client = await served.client(post(b"first") + GET * 3000)
    (await served.application.next()).answer()
    assert (await client.answer())[2] == b"/later first"
    for _ in range(3000):
        assert (await client.answer())[2] == b"/now "


async def test_a_request_may_come_byte_by_byte(served: Served[Desk]) -> None:
    client = await served.client()
    for byte in post(b"slowly", "Inference-Header-Content-Length: 4"):
        client.send(bytes([byte]))
        await asyncio.sleep(0)
    ticket = await served.application.next()
    assert (ticket.request.target, ticket.request.json_length, ticket.body) == (b"/later", 4, b"slowly")
    ticket.answer()
    assert (await client.answer())[0] == 200


async def test_a_body_in_pieces_lies_so_that_its_first_tensor_is_aligned(served: Served[Desk]) -> None:
    body = b"{json}" + bytes(range(64))
    request = post(body, "Inference-Header-Content-Length: 6")
    client = await served.client(request[:-10])
    connection = await served.connection()
    await until(lambda: connection._reader.received_bytes > 0)
    client.send(request[-10:])
    ticket = await served.application.next()
    assert ticket.body == body
    tensor = np.frombuffer(ticket.request.body, "u1", offset=ticket.request.body_offset + 6)
    whole = np.frombuffer(ticket.request.body, "u1")
    assert (tensor.ctypes.data - whole.ctypes.data) % 64 == 0


async def test_a_chunked_body(served: Served[Desk]) -> None:
    head = b"POST /now HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    client = await served.client(head + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n" + GET)
    assert (await client.answer())[2] == b"/now abcde"
    assert (await client.answer())[2] == b"/now "


async def test_a_coding_is_written_in_any_case(served: Served[Desk]) -> None:
    head = b"POST /now HTTP/1.1\r\nhOST: x\r\nTRANSFER-encoding: Chunked\r\n\r\n"
    client = await served.client(head + b"3\r\nabc\r\n0\r\n\r\n")
    assert (await client.answer())[2] == b"/now abc"


@pytest.mark.parametrize(
    ("target", "path"),
    [
        (b"http://host/now", b"/now"),
        (b"HTTP://other.example:8000/now", b"/now"),
        (b"https://[::1]:443/later?a=http://b/", b"/later?a=http://b/"),
        (b"http://host", b"/"),
        (b"http://host?a=b", b"/?a=b"),
    ],
)
async def test_a_target_with_scheme_and_host_is_its_path(target: bytes, path: bytes) -> None:
    limits = HttpLimits(max_body_bytes=LIMIT)
    async with serving(Desk(), limits, lambda name: name.lower() == b"host") as served:
        client = await served.client(b"GET %s HTTP/1.1\r\nHost: sent\r\n\r\n" % target + GET)
        if path != b"/now":
            ticket = await served.application.next()
            assert ticket.request.headers == ((b"Host", target.split(b"/")[2].split(b"?")[0]),)
            ticket.answer()
        assert (await client.answer())[2] == path + b" "
        assert (await client.answer())[2] == b"/now "


async def test_a_trailer_does_not_pass_for_a_header() -> None:
    async with serving(Desk(), HttpLimits(max_body_bytes=LIMIT), lambda _name: True) as served:
        head = b"POST /later HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
        trailers = b"Host: y\r\nadmin-key: secret\r\nInference-Header-Content-Length: 1\r\n"
        await served.client(head + b"3\r\nabc\r\n0\r\n" + trailers + b"\r\n")
        request = (await served.application.next()).request
        assert request.headers == ((b"Host", b"x"), (b"Transfer-Encoding", b"chunked"))
        assert request.json_length is None


async def test_a_client_that_expects_to_be_asked_for_its_body(served: Served[Desk]) -> None:
    client = await served.client(post(b"abc", "Expect: 100-continue", path="/now")[:-3])
    assert await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 10) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"abc")
    assert (await client.answer())[2] == b"/now abc"


async def test_the_invitation_comes_after_the_answers_before_it(served: Served[Desk]) -> None:
    client = await served.client(post(b"1") + post(b"abc", "Expect: 100-continue", path="/now")[:-3])
    (await served.application.next()).answer()
    assert (await client.answer())[2] == b"/later 1"
    assert await asyncio.wait_for(client.reader.readuntil(b"\r\n\r\n"), 10) == b"HTTP/1.1 100 Continue\r\n\r\n"
    client.send(b"abc")
    assert (await client.answer())[2] == b"/now abc"


@pytest.mark.parametrize(
    ("content", "status", "sentence"),
    [
        pytest.param(
            f"POST / HTTP/1.1\r\nContent-Length: {LIMIT + 1}\r\n\r\n".encode(), 413, b"larger than 1000", id="too large"
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n",
            413,
            b"larger than 1000",
            id="too large and waiting to be asked: not asked",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1f4\r\n" + b"x" * 500 + b"\r\n"
            b"1f5\r\n" + b"x" * 501 + b"\r\n",
            413,
            b"larger than 1000",
            id="too large without having said so",
        ),
        pytest.param(b"GET / HTTP/1.1\r\nA: " + b"x" * 70_000, 431, b"headers are larger", id="endless headers"),
        pytest.param(b"GET /" + b"x" * 70_000, 431, b"headers are larger", id="an endless path"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01", 400, b"not valid HTTP/1.1", id="TLS on a plain port"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400, b"not valid HTTP/1.1", id="HTTP/2 without asking"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400, b"not valid", id="a negative length"),
        pytest.param(b"POST / HTTP/1.1\r\nContent-Length: 1e3\r\n\r\n", 400, b"not valid", id="no number as length"),
        pytest.param(
            b"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
            b"not valid",
            id="smuggling",
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nContent-Encoding: br\r\n", 415, b"'br' is not supported", id="another coding"
        ),
        pytest.param(b"POST / HTTP/1.1\r\nExpect: cake\r\n", 417, b"100-continue", id="another expectation"),
        pytest.param(
            b"POST / HTTP/1.1\r\nInference-Header-Content-Length: -1\r\n", 400, b"number of bytes", id="negative"
        ),
        pytest.param(
            b"POST / HTTP/1.1\r\nInference-Header-Content-Length: a\r\n", 400, b"number of bytes", id="no number"
        ),
        pytest.param(b"GET /now HTTP/1.1\r\n", 400, b"one Host header, not 0", id="no host"),
        pytest.param(b"GET http://x/now HTTP/1.1\r\n", 400, b"one Host header, not 0", id="a host in the target only"),
        pytest.param(b"GET /now HTTP/1.1\r\nHost: x\r\nHost: x\r\n", 400, b"Host header, not 2", id="two hosts"),
        pytest.param(b"GET /now HTTP/1.0\r\nHost: x\r\nhost: y\r\n", 400, b"Host header, not 2", id="two, HTTP/1.0"),
        *(
            pytest.param(
                b"POST /now HTTP/1.1\r\nHost: x\r\n" + codings + b"\r\n3\r\nabc\r\n0\r\n\r\n",
                400,
                sentence,
                id=f"transfer coding {codings!r}",
            )
            for codings, sentence in (
                (b"Transfer-Encoding: gzip, chunked\r\n", b"supported is chunked"),
                (b"Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n", b"supported is chunked"),
                (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", b"Transfer-Encoding"),
                (b"Transfer-Encoding: chunked, gzip\r\n", b"Transfer-Encoding"),
                (b"Transfer-Encoding: gzip\r\n", b"Transfer-Encoding"),
                (b"Transfer-Encoding: identity\r\n", b"Transfer-Encoding"),
                (b"Transfer-Encoding: xchunked\r\n", b"Transfer-Encoding"),
                (b"Transfer-Encoding: \r\n", b"Transfer-Encoding"),
            )
        ),
    ],
)
async def test_what_cannot_be_taken_is_refused_once_and_ends_the_connection(
    served: Served[Desk], content: bytes, status: int, sentence: bytes
) -> None:
    client = await served.client(content if b"\r\n\r\n" in content else content + b"\r\n")
    found, headers, body = await client.answer()
    assert (found, headers["connection"]) == (status, "close")
    assert sentence in body
    client.send(b"x" * 5000)  # what is still on its way must not destroy the answer
    assert await client.ended()


async def test_a_client_that_is_still_sending_learns_why_it_was_refused(served: Served[Desk]) -> None:
    client = await served.client(b"POST / HTTP/1.1\r\nContent-Length: 5000000\r\n\r\n")
    for _ in range(50):
        client.send(b"x" * 100_000)
        await client.writer.drain()
    assert (await client.answer())[0] == 413


async def test_a_client_that_pipelines_without_end_is_not_read_without_end(served: Served[Desk]) -> None:
    client = await served.client(post(b"1") + GET * 40)
    connection = await served.connection()
    await until(lambda: not connection._transport.is_reading())
    (await served.application.next()).answer()
    assert (await client.answer())[2] == b"/later 1"
    for _ in range(40):
        assert (await client.answer())[2] == b"/now "
    assert connection._transport.is_reading()


async def test_a_refusal_waits_for_the_answers_before_it(served: Served[Desk]) -> None:
    client = await served.client(post(b"1") + b"\x00nonsense")
    (await served.application.next()).answer()
    assert (await client.answer())[2] == b"/later 1"
    assert (await client.answer())[0] == 400
    assert await client.ended()


async def test_errors_are_json(served: Served[Desk]) -> None:
    client = await served.client(b"GET /missing HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
    status, headers, body = await client.answer()
    assert (status, headers["content-type"], body) == (404, "application/json", b'{"error":"nothing here"}')
    assert (await client.answer())[0] == 200


async def test_a_mistake_of_ours_is_told_without_its_details(
    served: Served[Desk], caplog: pytest.LogCaptureFixture
) -> None:
    client = await served.client(b"GET /broken HTTP/1.1\r\nHost: x\r\n\r\n" + GET)
    status, _, body = await client.answer()
    assert (status, body) == (500, b'{"error":"internal error"}')
    assert (await client.answer())[0] == 200
    assert "a mistake of ours" in caplog.text


@pytest.mark.parametrize(
    "request_bytes",
    [
        pytest.param(b"GET /now HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", id="asked to"),
        pytest.param(b"GET /now HTTP/1.0\r\n\r\n", id="HTTP/1.0"),
        pytest.param(b"GET /now HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", id="HTTP/1.0 that would stay"),
    ],
)
async def test_a_connection_that_is_not_kept_is_told_and_closed(served: Served[Desk], request_bytes: bytes) -> None:
    client = await served.client(request_bytes)
    status, headers, _ = await client.answer()
    assert (status, headers["connection"]) == (200, "close")
    assert await client.ended()


@pytest.mark.parametrize("path", [b"/now", b"/later"])
async def test_an_upgrade_that_is_offered_is_not_needed(served: Served[Desk], path: bytes) -> None:
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
    client = await served.client(b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n" + upgrade)
    if path == b"/later":
        (await served.application.next()).answer()
    assert (await client.answer())[2] == path + b" "
    assert await client.ended()


async def test_a_lost_connection_cancels_its_request(served: Served[Desk]) -> None:
    client = await served.client(post(b"1"))
    ticket = await served.application.next()
    client.writer.close()
    await asyncio.wait_for(ticket.cancelled.wait(), 10)


async def test_a_client_that_never_finishes_its_request_is_told_and_dropped(served: Served[Desk]) -> None:
    client = await served.client(post(b"abc")[:-1])
    connection = await served.connection()
    await until(lambda: connection.busy)
    connection.sweep(served.listener.now + 20)
    assert connection.busy
    connection.sweep(served.listener.now + 31)
    status, _, body = await client.answer()
    assert (status, body) == (408, b'{"error":"the request did not arrive in time"}')
    assert await client.ended()


async def test_an_idle_connection_is_closed_after_its_time(served: Served[Desk]) -> None:
    client = await served.client(GET)
    await client.answer()
    connection = await served.connection()
    connection.sweep(served.listener.now + 3600)
    client.send(GET)
    assert (await client.answer())[0] == 200
    connection.sweep(served.listener.now + 3700)
    assert await client.ended()


async def test_a_client_that_does_not_read_its_answers_is_dropped(served: Served[Desk]) -> None:
    client = await served.client()
    connection = await served.connection()
    connection._transport.set_write_buffer_limits(high=0)
    connection._transport.write(b"x" * 20_000_000)
    assert connection._write_paused_since is not None
    connection.sweep(served.listener.now)
    connection.sweep(served.listener.now + 31)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await asyncio.wait_for(client.reader.readexactly(20_000_000), 10)


async def test_draining_finishes_what_was_accepted_and_ends_the_rest(served: Served[Desk]) -> None:
    idle = await served.client(GET)
    await idle.answer()
    busy = await served.client(post(b"1") + GET)
    half = await served.client(post(b"abc", path="/now")[:-1])
    ticket = await served.application.next()
    await until(lambda: sum(connection.busy for connection in served.listener._connections) == 2)
    served.listener.stop_accepting()
    drained = asyncio.create_task(served.listener.drained())
    assert await idle.ended()
    assert not drained.done()
    half.send(b"c")
    ticket.answer()
    assert (await busy.answer())[2] == b"/later 1"
    for client, expected in ((busy, b"/now "), (half, b"/now abc")):
        _, headers, body = await client.answer()
        assert (headers["connection"], body) == ("close", expected)
        assert await client.ended()
    await asyncio.wait_for(drained, 10)
    with pytest.raises(ConnectionRefusedError):
        await served.client()


class Wire(asyncio.Transport):
    """A transport that keeps what is written; stands for a socket where thousands are needed."""

    def __init__(self) -> None:
        super().__init__()
        self.written = b""
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += bytes(data)

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self.closed = True

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass


Piece = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [
            GET,
            post(b"abc", path="/now"),
            b"POST /now HTTP/1.1\r\nHost: x\r\n",
            b"Content-Length: 5\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"Expect: 100-continue\r\n",
            b"Connection: upgrade\r\nUpgrade: h2c\r\n",
            b"\r\n",
            b"5\r\nabcde\r\n",
            b"0\r\n\r\n",
            b"GET /missing HTTP/1.1\r\nHost: x\r\n\r\n",
        ]
    ),
)


@given(st.lists(Piece, max_size=12))
def test_whatever_bytes_come_only_whole_answers_go_out(pieces: list[bytes]) -> None:
    async def play() -> bytes:
        wire = Wire()
        sock = socket.socket()
        with sock:
            connection = Connection(Listener(Desk(), sock, HttpLimits(max_body_bytes=LIMIT)))
            connection.connection_made(wire)
            for piece in pieces:
                if not wire.closed:
                    connection.data_received(piece)
            connection.connection_lost(None)
        return wire.written

    written = asyncio.run(play())
    while written:
        head, _, rest = written.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 ")
        length = int(head.rpartition(b"Content-Length: ")[2]) if b"Content-Length" in head else 0
        assert len(rest) >= length
        assert b" 500 " not in head.split(b"\r\n")[0]
        written = rest[length:]
