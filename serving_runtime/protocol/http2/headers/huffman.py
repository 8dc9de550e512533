"""HPACK Huffman decoder (RFC 7541, section 5.2): one step per byte where hpack's decoder takes two."""

from typing import TypeAlias

from hpack import HPACKDecodingError
from hpack.huffman_table import HUFFMAN_COMPLETE, HUFFMAN_EMIT_SYMBOL, HUFFMAN_FAIL, HUFFMAN_TABLE

_Step: TypeAlias = tuple["_State", bytes, bool]
"""The state after a byte, the decoded bytes, and whether the string may end there."""


class _State(dict[int, _Step]):
    """A position within a code: the steps taken from it, by byte; a few of 256 where strings are ids.

    Attributes:
        number: in hpack's table.
    """

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def __missing__(self, byte: int) -> _Step:
        """Take the two steps of hpack's table for a byte."""
        at, added, flags = self.number, b"", 0
        for nibble in (byte >> 4, byte & 0x0F):
            at, flags, symbol = HUFFMAN_TABLE[at * 16 + nibble]
            if flags & HUFFMAN_FAIL:
                raise HPACKDecodingError("a string is no Huffman code")
            if flags & HUFFMAN_EMIT_SYMBOL:
                added += bytes((symbol,))
        following = _states.setdefault(at, _State(at))
        self[byte] = step = (following, added, bool(flags & HUFFMAN_COMPLETE))
        return step


_BEGINNING = _State(0)
_states = {0: _BEGINNING}


def decode(content: bytes) -> bytes:
    """Return the string; raises HPACKDecodingError for invalid content."""
    state, ends = _BEGINNING, True
    found = []
    for byte in content:
        state, added, ends = state[byte]
        found.append(added)
    if not ends:
        raise HPACKDecodingError("a Huffman code ends early")
    return b"".join(found)
