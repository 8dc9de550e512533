"""Requests whose head was there before are read as if it had been parsed."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.protocol.http.limits import HttpLimits
from serving_runtime.protocol.http.message import Request, Response
from serving_runtime.protocol.http.reader import RequestReader
from tests.serving_runtime.protocol.http.listening import Desk, post, serving


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


def test_a_head_that_comes_again_is_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    keeps = Keeps()
    one = reader(keeps)
    one.feed(post(b"one"))
    monkeypatch.setattr(one, "on_header", None)
    one.feed(post(b"two"))
    assert [body for _, body, _ in keeps.found] == [b"one", b"two"]


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
    assert one._known is not None
    assert len(one._known.head) == len(message) - 100_000
    assert one._known.request.body == b""
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
