"""Blocks that come again but for a few values are read as blocks that never came before."""

from collections.abc import Callable
from unittest.mock import ANY

import hpack
import pytest
from hpack.huffman_table import decode_huffman
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.protocol.grpc.on_http2.heads import Endpoint, Head, interpret
from serving_runtime.protocol.http2 import frames
from serving_runtime.protocol.http2.frames import ConnectionFailure, StreamFailure
from serving_runtime.protocol.http2.headers import huffman
from serving_runtime.protocol.http2.headers.blocks import HeaderReader
from serving_runtime.protocol.http2.headers.fields import Field, FieldDecoder, Fields
from tests.serving_runtime._support.http2_peer import Peer

PSEUDO = [(b":method", b"POST"), (b":scheme", b"http"), (b":authority", b"x")]
VALUES = st.one_of(st.from_regex(rb"[0-9a-f]{1,40}", fullmatch=True), st.binary(max_size=8))
REQUESTS = st.lists(
    st.tuples(
        st.sampled_from([b"/infer", b"/ready"]),
        VALUES,
        VALUES,
        st.sampled_from([b"12", b"290", b"-1", b""]),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


def fields_of(path: bytes, deadline: bytes, request_id: bytes, length: bytes = b"12") -> list[Field]:
    return [
        *PSEUDO,
        (b":path", path),
        (b"te", b"trailers"),
        (b"grpc-timeout", deadline),
        (b"content-length", length),
        (b"x-request-id", request_id),
    ]


def reader() -> "HeaderReader[list[Field]]":
    return HeaderReader(lambda fields, _known: list(fields))


def outcome(reader: "HeaderReader[list[Field]]", block: bytes) -> tuple[Fields, int | None] | str:
    try:
        return reader.request(block)
    except (StreamFailure, ConnectionFailure) as failure:
        return f"{type(failure).__name__}: {failure}"


def without_table() -> "hpack.Encoder":
    """Return an encoder whose first block tells that it has no table."""
    encoder = hpack.Encoder()
    encoder.header_table_size = 0
    return encoder


@given(REQUESTS, st.booleans())
def test_a_reader_that_has_seen_others_says_the_same_as_one_that_has_not(
    requests: list[tuple[bytes, bytes, bytes, bytes, bool, bool]], sensitive: bool
) -> None:
    seen, encoder = reader(), without_table()
    for path, deadline, request_id, length, coded, damaged in requests:
        fields = [hpack.NeverIndexedHeaderTuple(*each) for each in fields_of(path, deadline, request_id, length)]
        block = bytes(encoder.encode(fields if sensitive else [tuple(each) for each in fields], huffman=coded))
        block = block[:-1] if damaged else block
        right = outcome(reader(), block)
        assert outcome(seen, block) == right
        if isinstance(right, str) and right.startswith("Connection"):
            return


CALLS = st.lists(
    st.tuples(
        st.sampled_from([b"/s/M", b"/s/N"]),
        st.sampled_from([b"1u", b"2m", b"x"]),
        st.sampled_from([b"1", b"2", b"a-long-one"]),
        st.sampled_from([b"identity", b"gzip", b"none"]),
        st.sampled_from([b"AA", b"AQ", b"?"]),
    ),
    min_size=3,
    max_size=12,
)


@given(CALLS)
def test_a_call_whose_id_differs_is_interpreted_as_one_that_was_never_seen(calls: list[tuple[bytes, ...]]) -> None:
    endpoints = {b"/s/M": Endpoint(None, None, streams=False, direct=None)}  # type: ignore[arg-type]
    seen: HeaderReader[Head] = HeaderReader(
        lambda fields, known: interpret(fields, endpoints) if known is None else known.of(fields)
    )
    encoder = without_table()
    for path, deadline, request_id, coding, binary in [(*calls[0][:2], b"0", *calls[0][3:]), *calls]:
        more = [(b"content-type", b"application/grpc"), (b"grpc-encoding", coding), (b"own-bin", binary)]
        fields = [*fields_of(path, deadline, request_id), *more]
        found, _ = seen.request(bytes(encoder.encode(fields)))
        right = interpret(fields, endpoints)
        assert found._replace(error=None, fields=()) == right._replace(error=None, fields=())
        assert str(found.error) == str(right.error)
        if found.error is None:
            assert found.fields == fields


def test_heads_of_calls_whose_ids_differ_are_made_of_known_ones() -> None:
    made: list[Fields] = []

    def interpret_new(fields: Fields, known: Fields | None) -> Fields:
        if known is None:
            made.append(fields)
        return fields

    found, encoder = HeaderReader(interpret_new), without_table()
    for number in range(9):
        found.request(bytes(encoder.encode(fields_of(b"/x", b"1u", b"id-%d" % number, b"%d" % number))))
    assert len(made) == 3  # the first one has a table to change
    for number in range(9):
        found.request(bytes(encoder.encode(fields_of(b"/x", b"%du" % number, b"id-%d" % number))))
    assert len(made) == 3 + 9


def test_only_what_differs_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    found, encoder = reader(), without_table()
    blocks = [bytes(encoder.encode(fields_of(b"/x", b"%du" % n, b"id-%d" % n, b"%d" % n))) for n in range(10, 20)]
    for block in blocks[:3]:  # the first one has a table to change
        found.request(block)
    monkeypatch.delattr(FieldDecoder, "decode")
    for number, block in zip(range(13, 20), blocks[3:], strict=True):
        right = fields_of(b"/x", b"%du" % number, b"id-%d" % number, b"%d" % number)
        assert found.request(block) == (right, number)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(fields_of(b"/x", b"1u\n", b"c"), id="a line break in a value"),
        pytest.param(fields_of(b"/x", b"1u", b"c", b"1x"), id="no content-length"),
        pytest.param([*PSEUDO, (b":path", b"/x"), (b"te", b"gzip"), *fields_of(b"/x", b"1u", b"c")[5:]], id="te"),
    ],
)
def test_what_differs_is_checked(block: list[Field]) -> None:
    found, encoder = reader(), without_table()
    for number in range(4):
        found.request(bytes(encoder.encode(fields_of(b"/x", b"%du" % number, b"id", b"%d" % number))))
    with pytest.raises(StreamFailure):
        found.request(bytes(encoder.encode(block)))


def test_what_refers_to_a_table_is_decoded_as_a_whole_when_the_table_has_changed() -> None:
    found, encoder = reader(), hpack.Encoder()
    for number in range(20):
        fields = fields_of(b"/x", b"1u", b"id-%d" % (number // 3))
        assert found.request(bytes(encoder.encode(fields)))[0] == fields


def test_what_is_kept_is_bounded() -> None:
    found, encoder = reader(), without_table()
    for number in range(100):
        found.request(bytes(encoder.encode([*fields_of(b"/%d" % number, b"1u", b"id"), (b"x-%d" % number, b"1")])))
        assert len(found._patterns._known) <= 8


def ask(peer: Peer, encoder: "hpack.Encoder", number: int) -> None:
    block = bytes(
        encoder.encode([*fields_of(b"/x", b"1u", b"id-%d" % number)[:6], (b"x-request-id", b"id-%d" % number)])
    )
    peer.send(frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 2 * number + 1, block))


async def test_a_client_that_puts_an_id_of_each_request_into_its_table_is_asked_to_do_without() -> None:
    peer, encoder = Peer(), hpack.Encoder()
    peer.send(frames.frame(frames.SETTINGS, frames.ACK, 0))
    told: list[bytes] = []
    for number in range(40):
        ask(peer, encoder, number)
        told += [frame.payload for frame in peer.received() if frame.kind == frames.SETTINGS and not frame.flags]
        if told and encoder.header_table_size:
            assert told == [b"\x00\x01" + bytes(4)]
            encoder.header_table_size = 0
            peer.send(frames.frame(frames.SETTINGS, frames.ACK, 0))
    assert len(told) == 1
    assert encoder.header_table_size == 0
    heads = [dict(stream.head) for stream in peer.host.streams]
    assert [head[b"x-request-id"] for head in heads] == [b"id-%d" % number for number in range(40)]
    encoder.header_table_size = 100  # which it may not any more
    ask(peer, encoder, 40)
    assert peer.farewell() == (frames.ErrorCode.COMPRESSION_ERROR, ANY)


async def test_a_client_that_fills_its_table_once_keeps_it() -> None:
    peer, encoder = Peer(), hpack.Encoder()
    for number in range(40):
        block = bytes(encoder.encode(fields_of(b"/x", b"1u", b"id")[:6]))
        peer.send(frames.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 2 * number + 1, block))
    assert not any(frame.kind == frames.SETTINGS for frame in peer.received())
    assert len(peer.host.streams) == 40


@given(st.binary(max_size=60))
def test_any_bytes_are_the_string_that_hpack_reads_or_none(content: bytes) -> None:
    def outcome(decode: Callable[[bytes], bytes]) -> bytes | None:
        try:
            return decode(content)
        except hpack.HPACKDecodingError:
            return None

    assert outcome(huffman.decode) == outcome(decode_huffman)
