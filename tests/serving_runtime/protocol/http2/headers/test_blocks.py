"""Header blocks: what a request may have, and blocks that repeat."""

import contextlib

import hpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.protocol.http2.frames import ConnectionFailure, ErrorCode, StreamFailure
from serving_runtime.protocol.http2.headers.blocks import MAX_HEADER_LIST_BYTES, HeaderReader, encode
from serving_runtime.protocol.http2.headers.fields import Fields
from serving_runtime.protocol.http2.headers.rules import check_request, check_trailers

GOOD = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/x"), (b"te", b"trailers")]

names = st.from_regex(rb"[a-z0-9!#$%&'*+.^_`|~-]{1,200}", fullmatch=True)
values = st.binary(max_size=300)


@given(st.lists(st.tuples(names, values), max_size=20))
def test_any_decoder_reads_what_is_encoded(fields: list[tuple[bytes, bytes]]) -> None:
    decoded = hpack.Decoder(max_header_list_size=1 << 20).decode(encode(fields), raw=True)
    assert [(bytes(name), bytes(value)) for name, value in decoded] == fields


def reader() -> tuple["HeaderReader[Fields]", list[Fields]]:
    """Return a reader, and what it was asked to interpret."""
    seen: list[Fields] = []

    def interpret(fields: Fields, _known: Fields | None) -> Fields:
        seen.append(fields)
        return tuple((bytes(name), bytes(value)) for name, value in fields)

    return HeaderReader(interpret), seen


@given(st.lists(st.lists(st.tuples(names, st.sampled_from([b"1", b"2", b"3"])), max_size=4), min_size=1, max_size=30))
def test_blocks_that_repeat_mean_what_they_meant_while_the_table_moves_on(
    requests: list[list[tuple[bytes, bytes]]],
) -> None:
    encoder = hpack.Encoder()
    found, _ = reader()
    for extra in [*requests, *requests, *requests]:
        fields = [*GOOD, *[(b"x-" + name, value) for name, value in extra]]
        head, _ = found.request(bytes(encoder.encode(fields)))
        assert list(head) == fields


def test_a_block_that_leaves_the_table_as_it_is_is_interpreted_once() -> None:
    found, seen = reader()
    encoder = hpack.Encoder()
    blocks = [bytes(encoder.encode(GOOD)) for _ in range(5)]
    assert len({tuple(found.request(block)[0]) for block in blocks}) == 1
    assert len(seen) == 2  # the first one, which fills the table, and the second


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(GOOD[1:], id="no method"),
        pytest.param([*GOOD[:2], (b"te", b"trailers")], id="no path"),
        pytest.param([(b":path", b""), *GOOD[:2]], id="an empty path"),
        pytest.param([GOOD[0], *GOOD], id="a pseudo-header twice"),
        pytest.param([*GOOD, (b":authority", b"x")], id="a pseudo-header behind others"),
        pytest.param([(b":status", b"200"), *GOOD], id="a pseudo-header of answers"),
        pytest.param([*GOOD, (b"X-Upper", b"1")], id="a name in upper case"),
        pytest.param([*GOOD, (b"", b"1")], id="no name"),
        pytest.param([*GOOD, (b"a b", b"1")], id="a name with a space"),
        pytest.param([*GOOD, (b"a", b"1\r\nb: 2")], id="a line break in a value"),
        pytest.param([*GOOD, (b"connection", b"close")], id="a header of HTTP/1"),
        pytest.param([*GOOD, (b"te", b"gzip")], id="te other than trailers"),
        pytest.param([*GOOD, (b"content-length", b"-1")], id="a negative content-length"),
        pytest.param([*GOOD, (b"content-length", b"1"), (b"content-length", b"2")], id="two content-lengths"),
    ],
)
def test_fields_that_no_request_has_are_a_protocol_error(fields: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(StreamFailure) as caught:
        check_request(fields)
    assert caught.value.code is ErrorCode.PROTOCOL_ERROR


def test_a_requests_content_length_is_told() -> None:
    assert check_request(GOOD) is None
    assert check_request([*GOOD, (b"content-length", b"12")]) == 12


def test_trailers_have_no_pseudo_headers() -> None:
    check_trailers([(b"checksum", b"1")])
    with pytest.raises(StreamFailure):
        check_trailers([(b":path", b"/")])


def test_a_small_block_that_grows_beyond_the_limit_is_refused_before_it_has_grown() -> None:
    encoder = hpack.Encoder()
    found, _ = reader()
    found.request(bytes(encoder.encode([*GOOD, (b"x", b"a" * 3000)])))
    bomb = bytes(encoder.encode([(b"x", b"a" * 3000)])) * (MAX_HEADER_LIST_BYTES // 3000 + 1)
    assert len(bomb) < 100
    with pytest.raises(ConnectionFailure) as caught:
        found.request(bomb)
    assert caught.value.code is ErrorCode.ENHANCE_YOUR_CALM


@given(st.binary(max_size=200))
def test_any_bytes_are_fields_or_a_failure(block: bytes) -> None:
    found, _ = reader()
    with contextlib.suppress(StreamFailure, ConnectionFailure):
        found.request(block)
