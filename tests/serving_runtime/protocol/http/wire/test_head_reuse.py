"""Requests whose head was there before are read as if it had been parsed."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import httptools
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from serving_runtime.protocol.http.wire.limits import HttpLimits
from serving_runtime.protocol.http.wire.message import Request, Response
from serving_runtime.protocol.http.wire.reader import RequestReader
from tests.serving_runtime._support.http_listener import Client, Desk, post, serving, until


class Keeps:
    """A connection that keeps what its reader finds."""

    def __init__(self) -> None:
        self.found: list[tuple[Request, bytes, bool]] = []

    def on_request_begun(self) -> None: ...
    def on_body_awaited(self) -> None: ...
    def on_refusal(self, response: Response) -> None:
        raise AssertionError(response)

    def on_request(self, request: Request, keep_alive: bool) -> None:
        body = bytes(memoryview(request.body)[request.body_offset :])
        self.found.append((request._replace(body=b"", body_offset=0), body, keep_alive))


def reader(keeps: Keeps) -> RequestReader:
    return RequestReader(keeps, HttpLimits(), lambda name: name == b"traceparent")


def read(*pieces: bytes) -> list[tuple[Request, bytes, bool]]:
    """Return what one reader finds in pieces that come one after another."""
    keeps = Keeps()
    one = reader(keeps)
    for piece in pieces:
        one.feed(piece)
    return keeps.found


MESSAGES = [
    post(b"one"),
    post(b"two"),
    post(b""),
    post(b"\r\n\r\n"),
    post(b"one", path="/other"),
    post(b'{"a": 1}data', "Inference-Header-Content-Length: 8"),
    post(b'{"a": 2}more', "Inference-Header-Content-Length: 8", "traceparent: 00-1"),
    post(b'{"a": 2}more', "Inference-Header-Content-Length: 8", "traceparent: 00-2"),
    post(b"one", "Accept-Encoding: gzip"),
    post(b"one", "Expect: 100-continue"),
    post(b"one", "Content-Encoding: identity"),
    b"GET /now HTTP/1.1\r\nHost: x\r\n\r\n",
    b"POST /later HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n0\r\n\r\n",
]


@given(st.lists(st.sampled_from(MESSAGES), min_size=1, max_size=8), st.integers(0, 200))
def test_a_reader_finds_what_new_readers_would(messages: list[bytes], cut: int) -> None:
    alone = [read(message)[0] for message in messages]
    assert read(*messages) == alone
    stream = b"".join(messages)
    assert read(messages[0], stream[:cut], stream[cut:]) == [alone[0], *alone]
    assert read(*messages, b"\r\n", *messages) == [*alone, *alone]


@pytest.mark.parametrize("again", [post(b"two"), post(b"\r\n\r\n"), post(b"three")])
def test_an_empty_line_behind_a_body_is_no_part_of_a_head(again: bytes) -> None:
    assert [body for _, body, _ in read(post(b"\r\n\r\n") + b"\r\n", again, again)][1:] == [read(again)[0][1]] * 2


def test_a_known_head_is_read_anew_where_other_headers_are_wanted() -> None:
    keeps = Keeps()
    one = reader(keeps)
    one.feed(post(b"one", "traceparent: 00-1", "x: y"))
    one.keep(lambda name: name == b"x")
    one.feed(post(b"one", "traceparent: 00-1", "x: y"))
    assert [request.headers for request, _, _ in keeps.found] == [((b"traceparent", b"00-1"),), ((b"x", b"y"),)]


def test_what_a_reader_keeps_is_a_head_and_no_body() -> None:
    one = reader(Keeps())
    message = post(bytes(100_000))
    one.feed(message)
    (known,) = one._known._known
    assert known.rest == message[:-100_000]
    assert known.request.body == b""
    assert one._whole is None
    one.feed(message[:10])
    one.feed(message[10:])
    assert one._whole is None


async def test_who_sent_the_body_at_once_is_not_asked_for_it() -> None:
    async with serving(Desk(), HttpLimits()) as served:
        client = await served.client(post(b"first") + post(b"abc", "Expect: 100-continue", path="/now"))
        (await served.application.next()).answer()
        assert (await client.answer())[2] == b"/later first"
        assert (await client.answer())[2] == b"/now abc"
        client.send(post(b"next", path="/now"))
        assert (await client.answer())[::2] == (200, b"/now next")


async def test_known_heads_wait_for_the_answer_before_them() -> None:
    async with serving(Desk(), HttpLimits()) as served:
        client = await served.client(post(b"one"))
        first = await served.application.next()
        client.send(post(b"two"))
        await asyncio.sleep(0)
        first.answer()
        second = await served.application.next()
        assert second.body == b"two"
        second.answer()
        assert [(await client.answer())[2] for _ in range(2)] == [b"/later one", b"/later two"]


# Heads that differ in the values of some headers

WANTED = {b"x-request-id", b"tracestate"}


class Notes(Keeps):
    """A connection that notes refusals, too, and reads nothing behind one."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[Response] = []

    def on_refusal(self, response: Response) -> None:
        self.refusals.append(response)

    def read(self, pieces: Sequence[bytes]) -> list[Any]:
        """Return all that is found in pieces that come one after another, and how it ends."""
        one = RequestReader(self, HttpLimits(max_body_bytes=1000), lambda name: name.lower() in WANTED)
        for piece in pieces:
            try:
                one.feed(piece)
            except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
                return [*self.found, type(error)]
            if self.refusals:
                return [*self.found, *self.refusals]
        return [*self.found, one.reading]


class Counts(RequestReader):
    """A reader that counts what its parser begins."""

    parsed = 0

    def on_message_begin(self) -> None:
        self.parsed += 1
        super().on_message_begin()


def parsed(messages: Sequence[bytes]) -> list[Any]:
    """Return what is found where nothing but the parser reads: it has begun before a whole message is there."""
    return Notes().read([piece for message in messages for piece in (message[:1], message[1:])])


def known(messages: Sequence[bytes]) -> list[Any]:
    return Notes().read(messages)


def infer(body: bytes, request_id: bytes = b"1-a", *, length: bytes = b"", more: bytes = b"") -> bytes:
    """Return a request as a proxy sends it on."""
    length = length or str(len(body)).encode()
    return (
        b"POST /v2/models/m/infer HTTP/1.1\r\nhost: x\r\ncontent-length: %b\r\nx-forwarded-for: 10.0.0.1\r\n%b"
        b"x-request-id: %b\r\n\r\n%b"
    ) % (length, more, request_id, body)


TRACE = b"traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\r\ntracestate: a=1,b=2\r\n"
NASTY = [
    b"\r",
    b"\n",
    b"\r\n",
    b"\r\n ",
    b"\r\n\t",
    b"\r\n\r\n",
    b"\0",
    b"\x7f",
    b"\xff",
    b" ",
    b":",
    b",",
    b"0",
    b"9",
    b"-",
]
NASTY += [
    b"\r\nx-request-id: 2",
    b"\r\ncontent-length: 0",
    b"\r\ntransfer-encoding: chunked",
    b"x" * 130,
    b"GET / HTTP/1.1",
]
BASES = [infer(b"one"), infer(b"", more=TRACE), infer(b"{}data", more=b"Inference-Header-Content-Length: 2\r\n")]


@st.composite
def edited(draw: st.DrawFn) -> bytes:
    """Return a request of which a few bytes are others."""
    message = draw(st.sampled_from(BASES))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, len(message)))
        end = draw(st.integers(at, min(len(message), at + 8)))
        message = message[:at] + draw(st.sampled_from(NASTY)) + message[end:]
    return message


@st.composite
def other_values(draw: st.DrawFn) -> bytes:
    """Return a request of which the values may be any."""
    value = st.one_of(st.from_regex(rb"[-_.:,/+=@*0-9A-Za-z]{1,128}", fullmatch=True), st.binary(max_size=6))
    body = draw(st.sampled_from([b"", b"a", b"GET / HTTP/1.1", b"{}" * 40, b"\r\n\r\n", bytes(1001)]))
    length = draw(
        st.sampled_from([b"", b"", b"", b"0%d" % len(body), b"%d" % (len(body) + 1), b"+1", b"0x1", b"9" * 30])
    )
    more = b"".join(
        b"%b:%b%b\r\n" % (name, draw(st.sampled_from([b"", b" ", b"\t "])), draw(value))
        for name in draw(
            st.lists(
                st.sampled_from(
                    [b"X-Request-Id", b"traceparent", b"tracestate", b"inference-header-content-length", b"x-other"]
                ),
                max_size=3,
            )
        )
    )
    return infer(body, draw(value), length=length, more=more)


@given(st.lists(st.one_of(edited(), other_values(), st.sampled_from(BASES)), min_size=2, max_size=6))
@example([infer(b"a", b"1"), infer(b"a", b"2\r\n 3"), infer(b"a", b"4")])
@example([infer(b"a", b"1\r\n 2"), infer(b"a", b"3\r\n 2"), infer(b"a", b"4\r\n 2")])
def test_heads_with_other_values_are_read_as_the_parser_reads_them(messages: list[bytes]) -> None:
    assert known(messages) == parsed(messages)


@pytest.mark.parametrize(
    ("messages", "times"),
    [
        pytest.param([post(b"one"), post(b"two")], 1, id="the same head"),
        pytest.param([infer(b"a", b"%d" % number) for number in range(9)], 1, id="ids of their own"),
        pytest.param([infer(b"a" * number) for number in range(9)], 2, id="bodies of several lengths"),
        pytest.param(
            [infer(b"a", more=TRACE.replace(b"-01", b"-0%d" % number)) for number in range(9)], 1, id="traces"
        ),
        pytest.param(
            [infer(b"a", more=b"x-model: %d\r\n" % (number % 3)) for number in range(9)], 3, id="three clients"
        ),
        pytest.param([infer(b"a", b"x" * 129)] * 4, 1, id="one too long to vary, the same each time"),
        pytest.param([infer(b"a", b"%0129d" % number) for number in range(4)], 4, id="ids too long to vary"),
    ],
)
def test_only_heads_of_a_new_kind_are_parsed(messages: list[bytes], times: int) -> None:
    keeps = Keeps()
    one = Counts(keeps, HttpLimits(), None)
    for message in messages:
        one.feed(message)
    assert len(keeps.found) == len(messages)
    assert one.parsed == times


def test_the_application_gets_the_value_of_each_request() -> None:
    more = b"Tracestate: %b\r\nx: y\r\n"
    messages = [infer(b"a", b"%d" % number, more=more % (b"a=%d" % number)) for number in range(3)]
    headers = [request.headers for request, _, _ in known(messages)[:-1]]
    assert headers == [((b"Tracestate", b"a=%d" % number), (b"x-request-id", b"%d" % number)) for number in range(3)]


ATTACKS: dict[str, Callable[[bytes], bytes]] = {
    "a second request in the id": lambda id_: infer(b"a", id_ + b"\r\n\r\nGET /now HTTP/1.1\r\nhost: x"),
    "a second length in the id": lambda id_: infer(b"a", id_ + b"\r\ncontent-length: 30"),
    "chunks in the id": lambda id_: infer(b"0\r\n\r\n", id_ + b"\r\ntransfer-encoding: chunked"),
    "a host in the id": lambda id_: infer(b"a", id_ + b"\r\nhost: y"),
    "a bare line feed": lambda id_: infer(b"a", id_ + b"\ncontent-length: 30"),
    "a bare carriage return": lambda id_: infer(b"a", id_ + b"\rx"),
    "a zero byte": lambda id_: infer(b"a", id_ + b"\0"),
    "a folded line": lambda id_: infer(b"a", id_ + b"\r\n folded"),
    "an id of 70,000 bytes": lambda id_: infer(b"a", id_ * 70_000),
    "a length with a sign": lambda _: infer(b"a", length=b"+1"),
    "a length below that of the body": lambda _: infer(b"GET /now HTTP/1.1\r\nhost: x\r\n\r\n", length=b"0"),
    "a length of many digits": lambda _: infer(b"a", length=b"18446744073709551617"),
    "two lengths": lambda _: infer(b"a", length=b"1, 1"),
    "a body that is too large": lambda _: infer(bytes(2000)),
    "a JSON length of many digits": lambda _: infer(
        b"a", more=b"inference-header-content-length: %b\r\n" % (b"1" * 20)
    ),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS.keys())
async def test_an_attack_on_a_known_head_is_answered_as_on_a_new_connection(attack: Callable[[bytes], bytes]) -> None:
    json_length = b"inference-header-content-length: %d\r\n"
    warm = [infer(b"a" * length, b"%d" % length) for length in (1, 2, 3)]
    warm += [infer(b"a" * length, more=json_length % length) for length in (1, 2, 3)]
    async with serving(Desk(), HttpLimits(max_body_bytes=1000)) as served:
        said = []
        for before in ([], warm):
            client = await served.client()
            for message in [*before, attack(b"7")]:
                client.send(message.replace(b"/v2/models/m/infer", b"/now"))
                said.append(await client.answer() if message in before else await _all(client))
    assert said[0] == said[-1]


async def _all(client: Client) -> bytes:
    """Return all that the server sends to a client that sends no more."""
    client.writer.write_eof()
    return await asyncio.wait_for(client.reader.read(), 10)


TWO = infer(b"two", b"2").replace(b"/v2/models/m/infer", b"/now")


@pytest.mark.parametrize("cut", range(1, len(TWO), 7))
async def test_a_known_head_may_come_in_two_packets(cut: int) -> None:
    async with serving(Desk(), HttpLimits()) as served:
        client = await served.client(TWO.replace(b": 2", b": 1"))
        assert (await client.answer())[2] == b"/now two"
        connection = await served.connection()
        client.send(TWO[:cut])
        await until(lambda: connection._reader.reading)
        client.send(TWO[cut:])
        assert (await client.answer())[2] == b"/now two"
