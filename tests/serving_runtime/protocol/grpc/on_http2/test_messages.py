"""Messages out of pieces, and compressed ones."""

import gzip
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.common.errors import InvalidArgument, ServingError, Unsupported
from serving_runtime.protocol.grpc.on_http2 import messages
from serving_runtime.protocol.grpc.on_http2.messages import Assembly, Message, TooLarge, decompress, prefixed, whole


@given(st.lists(st.binary(max_size=300), max_size=20), st.lists(st.integers(1, 100), min_size=1))
def test_messages_come_out_as_they_went_in_however_they_are_cut(sent: list[bytes], cuts: list[int]) -> None:
    wire = b"".join(prefixed(content) for content in sent)
    assembly = Assembly(1000)
    found = []
    at, turn = 0, 0
    while at < len(wire):
        piece = wire[at : at + cuts[turn % len(cuts)]]
        found += assembly.feed(piece)
        at, turn = at + len(piece), turn + 1
    assert [bytes(message.content) for message in found] == sent
    assert assembly.held_bytes == 0


def test_what_a_message_still_needs_is_known_from_its_prefix_on() -> None:
    assembly = Assembly(1000)
    assert assembly.needed_bytes == 5
    assembly.feed(b"\x00\x00\x00")
    assert assembly.needed_bytes == 2
    assembly.feed(b"\x01\x00ab")
    assert assembly.needed_bytes == 254


def test_a_message_above_the_limit_is_refused_by_its_prefix() -> None:
    with pytest.raises(TooLarge, match=r"larger than max \(1001 vs. 1000 bytes\)"):
        Assembly(1000).feed(b"\x00" + (1001).to_bytes(4, "big"))


def test_a_prefix_that_is_none_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="begins with 7"):
        Assembly(1000).feed(b"\x07\x00\x00\x00\x00")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("size", [10, 10_000, 300_000])
async def test_what_is_compressed_is_read_again_and_never_larger(coding: str, size: int) -> None:
    for content in (bytes(size), zlib.compress(b"%d" % size)):
        (found,) = Assembly(1 << 20).feed(await messages.compressed(content, coding, 6))
        assert found.size_bytes <= 5 + len(content)
        held: list[int] = []
        assert bytes(await decompress(found, coding, 1 << 20, held.append)) == content
        assert not found.compressed or sum(held) == len(content)


@pytest.mark.parametrize(
    ("content", "coding", "error"),
    [
        pytest.param(gzip.compress(bytes(1001)), "gzip", TooLarge, id="a bomb"),
        pytest.param(gzip.compress(bytes(50))[:-3], "gzip", InvalidArgument, id="cut off"),
        pytest.param(b"plain", "gzip", InvalidArgument, id="no gzip"),
        pytest.param(gzip.compress(b"x"), "deflate", InvalidArgument, id="another coding"),
        pytest.param(b"x", "identity", InvalidArgument, id="no coding"),
    ],
)
async def test_what_cannot_be_decompressed_is_refused(content: bytes, coding: str, error: type[ServingError]) -> None:
    message = Message(compressed=True, content=memoryview(content), size_bytes=len(content))
    with pytest.raises(error):
        await decompress(message, coding, 1000, lambda _size: None)


def test_codings_that_are_not_known_are_named() -> None:
    with pytest.raises(Unsupported, match="'snappy' is not one of identity, gzip, deflate"):
        messages.check_coding("snappy")


@given(st.binary(max_size=20), st.booleans(), st.binary(max_size=3))
def test_a_piece_that_is_one_message_is_read_as_pieces_are(content: bytes, compressed: bool, more: bytes) -> None:
    piece = prefixed(content, compressed=compressed)
    assert [whole(piece, 20)] == Assembly(20).feed(piece)
    for other in (piece[:-1], piece + b"x" + more, b"\x02" + piece[1:], more[:4]):
        assert whole(other, 20) is None
    assert whole(prefixed(bytes(21)), 20) is None
