import hpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serving_runtime.protocol.http2.headers.fields import Field, FieldDecoder

NAMES = st.sampled_from([b":path", b":method", b"content-type", b"x-request-id", b"grpc-timeout", b"te"])
NAME = st.one_of(NAMES, st.binary(min_size=1, max_size=200))
VALUE = st.one_of(st.sampled_from([b"POST", b"trailers", b""]), st.binary(max_size=300))
BLOCK = st.tuples(st.lists(st.tuples(NAME, VALUE, st.booleans()), max_size=8), st.booleans(), st.integers(0, 4096))

MOST_BYTES = 2000


def _outcome(decode: object) -> list[Field] | type[Exception]:
    try:
        return [tuple(field) for field in decode()]  # type: ignore[operator,misc]
    except hpack.OversizedHeaderListError:
        return hpack.OversizedHeaderListError
    except hpack.HPACKError:
        return hpack.HPACKError


def _agree(blocks: list[bytes]) -> None:
    theirs, ours = hpack.Decoder(max_header_list_size=MOST_BYTES), FieldDecoder(MOST_BYTES)
    for block in blocks:
        right = _outcome(lambda: theirs.decode(block, raw=True))  # noqa: B023
        assert _outcome(lambda: ours.decode(block)) == right  # noqa: B023
        if isinstance(right, type):  # the connection ends
            return
        assert ours.table.dynamic_entries == theirs.header_table.dynamic_entries
        assert ours.table.maxsize == theirs.header_table.maxsize


@given(st.lists(BLOCK, min_size=1, max_size=4))
@settings(max_examples=200, deadline=None)
def test_what_an_encoder_makes_is_read_as_hpack_reads_it(
    given: list[tuple[list[tuple[bytes, bytes, bool]], bool, int]],
) -> None:
    encoder, blocks = hpack.Encoder(), []
    for fields, huffman, table_bytes in given:
        encoder.header_table_size = table_bytes
        blocks.append(encoder.encode(fields, huffman=huffman))
    _agree(blocks)


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=4))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_read_or_refused_as_by_hpack(blocks: list[bytes]) -> None:
    _agree(blocks)


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(b"\x80", id="the index 0"),
        pytest.param(b"\xff\x80\x80", id="an index that does not end"),
        pytest.param(b"\xff" + b"\xff" * 20 + b"\x00", id="an index without bounds"),
        pytest.param(b"\xbf", id="an index behind the tables"),
        pytest.param(b"\x40", id="a name that is not there"),
        pytest.param(b"\x40\x03ab", id="a name that ends early"),
        pytest.param(b"\x44", id="a value that is not there"),
        pytest.param(b"\x44\x85\x00", id="a Huffman code that ends early"),
        pytest.param(b"\x83\x3f\xe1\x1f", id="a resize behind a field"),
        pytest.param(b"\x3f\xe2\x1f", id="a table above the limit"),
    ],
)
def test_a_wrong_block_is_refused_by_hpacks_errors(block: bytes) -> None:
    with pytest.raises(hpack.HPACKError):
        FieldDecoder(MOST_BYTES).decode(block)
