"""Concurrency limit of callers: whatever clients do, the count is the number of their unanswered requests."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.clusters.local.envoy import access
from serving_runtime.common.errors import NotFound
from serving_runtime.protocol import caller_limit
from serving_runtime.protocol.caller_limit import TooManyRequests, UnansweredRequests
from serving_runtime.protocol.grpc.methods import DirectMethod, Method, Reply, StreamMethod
from serving_runtime.protocol.grpc.on_http2.server import Http2GrpcServer
from serving_runtime.protocol.grpc.policy import CallPolicy
from serving_runtime.protocol.grpc.settings import GrpcSettings
from serving_runtime.protocol.http.wire.connection import Connection as HttpConnection
from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.listener import Listener
from serving_runtime.protocol.http2 import frames
from tests.serving_runtime._support.http2_peer import Frame, Peer, Transport, headers
from tests.serving_runtime._support.http_listener import Desk, Ticket, post, serving, until

LIMIT = 2
CALLERS = ("a", "b")
METADATA = (
    (b":method", b"POST"),
    (b":scheme", b"http"),
    (b":path", b"/inference.GRPCInferenceService/ModelInfer"),
    (b":authority", b"x"),
    (b"content-type", b"application/grpc"),
)
MESSAGE = b"\0\0\0\0\0"


def test_the_header_is_the_one_that_the_gateway_sets_and_removes_from_what_clients_send() -> None:
    assert access.CALLER_LIMIT_HEADER.encode() == caller_limit.HEADER
    assert access.CALLER_LIMIT_HEADER in access.OURS


@pytest.mark.parametrize(
    ("headers", "limit"),
    [
        ({}, 0),
        ({b"fairlead-caller-limit": b"4"}, 4),
        ({b"fairlead-caller-limit": b"10000"}, 10_000),
        *(
            ({b"fairlead-caller-limit": each}, 0)
            for each in (b"", b"0", b"-1", b"4.0", b" 4", "²".encode("latin-1"), b"9" * 4000)
        ),
    ],
)
def test_only_a_number_is_a_limit(headers: Mapping[bytes, bytes], limit: int) -> None:
    assert caller_limit.sent(headers) == limit


@given(st.lists(st.tuples(st.sampled_from((b"a", b"b", b"")), st.integers(0, 4)), max_size=60))
def test_the_count_is_what_entered_and_did_not_leave(steps: list[tuple[bytes, int]]) -> None:
    """A limit of 0 means here that a request leaves."""
    counts, expected = UnansweredRequests(), Counter[bytes]()
    for caller, limit in steps:
        if not limit:
            if expected[caller]:
                counts.leave(caller)
                expected[caller] -= 1
        elif expected[caller] < limit:
            counts.enter(caller, limit)
            expected[caller] += 1
        else:
            with pytest.raises(TooManyRequests, match=f"^too many requests at once: {expected[caller]} of this"):
                counts.enter(caller, limit)
        assert len(counts) == len(+expected), "callers without an unanswered request are forgotten"
    for caller in expected.elements():
        counts.leave(caller)
    assert len(counts) == 0


def room(counts: UnansweredRequests, caller: str) -> int:
    """Return how many more requests of a caller may come."""
    found = 0
    name = f"key {caller}".encode()
    try:
        while True:
            counts.enter(name, LIMIT)
            found += 1
    except TooManyRequests:
        for _ in range(found):
            counts.leave(name)
    return found


class Server(Protocol):
    """A server whose application answers on demand, as a client on one wire for each request sees it."""

    counts: UnansweredRequests

    def begin(self, caller: str) -> "Open | None":
        """Send a request; returns None where it is refused."""
        ...

    def close(self) -> None: ...


class Open:
    """An unanswered request, and the ways in which it ends."""

    def __init__(self, caller: str, *ends: Callable[[], object]) -> None:
        self.caller = caller
        self.ends = ends


class Wire(Transport):
    """A transport that can be closed by the server."""

    def write_eof(self) -> None:
        self.closed = True


class HttpServer:
    def __init__(self) -> None:
        self._socket = socket.socket()
        self._desk = Desk()
        self._listener = Listener(self._desk, self._socket, HttpLimits())
        self.counts = self._listener.unanswered

    def begin(self, caller: str) -> Open | None:
        wire, connection = Wire(), HttpConnection(self._listener)
        connection.connection_made(wire)
        connection.data_received(post(b"x", f"Fairlead-Caller: {caller}", f"fairlead-caller-limit: {LIMIT}"))
        if self._desk.tickets.empty():
            assert wire.written.startswith(b"HTTP/1.1 429 ")
            assert b"Retry-After: 1\r\n" in wire.written
            assert b'{"error":"too many requests at once: 2 of this caller' in wire.written
            assert not wire.closed, "the connection goes on"
            return None
        ticket = self._desk.tickets.get_nowait()

        def answered_and_lost() -> None:
            ticket.answer()
            connection.connection_lost(None)

        def lost_and_answered() -> None:
            connection.connection_lost(None)
            wire.close()
            ticket.answer()

        def failed() -> None:
            connection.data_received(b"no HTTP\r\n\r\n")
            ticket.answer()
            connection.connection_lost(None)

        lost = connection.connection_lost
        return Open(caller, ticket.answer, lambda: lost(None), answered_and_lost, lost_and_answered, failed)

    def close(self) -> None:
        self._socket.close()


class Work:
    def cancel(self) -> None: ...


class Keeping:
    """A service that keeps the calls that it gets."""

    name = "inference.GRPCInferenceService"

    def __init__(self) -> None:
        self.kept: list[Reply] = []
        self.methods: dict[str, Method] = {"ModelInfer": self._in_a_task}
        self.direct: dict[str, DirectMethod] = {"ModelInfer": self._keep}
        self.streams: dict[str, StreamMethod] = {}

    def drain(self) -> None: ...

    async def _in_a_task(self, message: Any) -> Any:
        raise AssertionError(message)

    def _keep(self, _content: memoryview, reply: Reply, _caller: bytes) -> Work:
        self.kept.append(reply)
        return Work()


class GrpcServer:
    """Calls on one connection; another one is made when it is lost."""

    def __init__(self) -> None:
        self._service = Keeping()
        self.counts = UnansweredRequests()
        self._host = Http2GrpcServer([self._service], GrpcSettings(), CallPolicy(), None, self.counts)
        self._connect()

    def _connect(self) -> None:
        self._peer = Peer(self._host)  # type: ignore[arg-type]

    def begin(self, caller: str) -> Open | None:
        peer = self._peer
        fields = ((b"fairlead-caller", caller.encode()), (b"fairlead-caller-limit", b"%d" % LIMIT))
        number = peer.begin((*METADATA, *fields))
        peer.received()
        if number not in peer.connection.streams:
            return None
        message = frames.frame(frames.DATA, frames.END_STREAM, number, MESSAGE)

        def answer() -> None:
            peer.send(message)
            self._service.kept.pop()((b"", 1))

        def fail() -> None:
            peer.send(message)
            self._service.kept.pop()(NotFound("nothing here"))

        def crash() -> None:
            peer.send(frames.frame(frames.DATA, frames.END_STREAM, number, b"no message"))

        def reset() -> None:
            peer.send(message, frames.rst_stream(number, frames.ErrorCode.CANCEL))
            self._service.kept.pop()((b"", 1))

        def withdraw() -> None:
            peer.send(frames.rst_stream(number, frames.ErrorCode.CANCEL))

        return Open(caller, answer, fail, crash, reset, withdraw)

    def close(self) -> None:
        self._peer.connection.connection_lost(None)


Step = st.tuples(st.sampled_from(CALLERS), st.integers(0, 6), st.integers(0, 4), st.booleans())


@pytest.mark.parametrize("kind", [HttpServer, GrpcServer])
@given(steps=st.lists(Step, max_size=40))
def test_however_requests_end_their_callers_get_their_places_back(
    kind: Callable[[], Server], steps: list[tuple[str, int, int, bool]]
) -> None:
    async def play() -> None:
        server, opened = kind(), list[Open]()
        for caller, which, how, begins in steps:
            counts = Counter(each.caller for each in opened)
            if begins or not opened:
                found = server.begin(caller)
                assert (found is None) == (counts[caller] == LIMIT)
                opened += [found] if found is not None else []
            else:
                opened.pop(which % len(opened)).ends[how]()
            counts = Counter(each.caller for each in opened)
            assert {each: room(server.counts, each) for each in CALLERS} == {
                each: LIMIT - counts[each] for each in CALLERS
            }
        if isinstance(server, GrpcServer):
            server.close()
        else:
            for each in opened:
                each.ends[1]()
            server.close()
        assert len(server.counts) == 0

    asyncio.run(play())


async def test_calls_of_a_lost_connection_give_their_places_back() -> None:
    server = GrpcServer()
    for _ in range(LIMIT):
        assert server.begin("a") is not None
    assert server.begin("a") is None
    server.close()
    assert len(server.counts) == 0


async def test_a_connection_that_breaks_the_protocol_gives_them_back() -> None:
    server = GrpcServer()
    assert server.begin("a") is not None
    server._peer.send(headers(2))
    assert server._peer.farewell() is not None
    assert len(server.counts) == 0


async def test_a_refused_call_ends_at_once_and_its_connection_goes_on() -> None:
    server = GrpcServer()
    peer = server._peer
    first = server.begin("a")
    assert first is not None
    fields = (*METADATA, (b"fairlead-caller", b"a"), (b"fairlead-caller-limit", b"1"))
    number = peer.begin(fields)
    kinds = {(each.kind, each.flags & frames.END_STREAM) for each in of_stream(peer, number)}
    assert kinds == {(frames.HEADERS, frames.END_STREAM), (frames.RST_STREAM, 0)}
    peer.send(frames.frame(frames.DATA, frames.END_STREAM, number, MESSAGE))
    first.ends[0]()
    assert server.begin("a") is not None


def of_stream(peer: Peer, number: int) -> list[Frame]:
    return [each for each in peer.received() if each.stream_id == number]


async def test_requests_of_a_caller_on_one_connection_have_the_limits_of_their_heads() -> None:
    """A head that repeats is not parsed again; a replica more halves the share of each."""
    async with serving(Desk(), HttpLimits()) as served:
        line, other = "fairlead-caller-limit: 2", "fairlead-caller-limit: 1"

        async def ask(*lines: str) -> Ticket | int:
            client = await served.client(post(b"x", *lines) * 1)
            await until(lambda: not served.application.tickets.empty() or bool(client.reader._buffer))  # type: ignore[attr-defined]
            if served.application.tickets.empty():
                return (await client.answer())[0]
            return served.application.tickets.get_nowait()

        held = [await ask(line), await ask(line)]
        assert all(isinstance(each, Ticket) for each in held)
        assert await ask(line) == 429
        assert isinstance(await ask(), Ticket), "a request without a limit is neither counted nor refused"
        assert isinstance(await ask(line, "fairlead-caller: other"), Ticket)
        for each in held[:1]:
            assert isinstance(each, Ticket)
            each.answer()
        assert await ask(other) == 429
        client = await served.client()
        for number, status in enumerate((200, 200, 429, 200)):  # from the second on, a head that is known
            client.send(post(b"y", other if status == 429 else line))
            if status == 200:
                (await served.application.next()).answer()
            assert (await client.answer())[0] == status, number


@pytest.mark.parametrize("path", ["/now", "/missing", "/broken"])
async def test_answers_at_once_and_errors_give_the_place_back(path: str) -> None:
    async with serving(Desk(), HttpLimits()) as served:
        client = await served.client()
        for _ in range(5):
            client.send(post(b"x", "fairlead-caller-limit: 1", path=path))
            assert (await client.answer())[0] != 429
        client.send(b"HEAD %s HTTP/1.1\r\nHost: x\r\nfairlead-caller-limit: 1\r\n\r\n" % path.encode())
        assert (await client.head())[0] != 429
        assert len(served.listener.unanswered) == 0


async def test_pipelined_requests_count_when_they_begin() -> None:
    async with serving(Desk(), HttpLimits()) as served:
        client = await served.client(post(b"x", "fairlead-caller-limit: 1") * 3)
        for _ in range(3):
            (await served.application.next()).answer()
            assert (await client.answer())[0] == 200


async def test_a_body_that_cannot_be_inflated_gives_the_place_back() -> None:
    async with serving(Desk(), HttpLimits()) as served:
        client = await served.client(post(b"no gzip", "Content-Encoding: gzip", "fairlead-caller-limit: 1"))
        assert (await client.answer())[0] == 400
        await until(lambda: len(served.listener.unanswered) == 0)
