"""Strings in HPACK's Huffman code (RFC 7541, section 5.2), a byte in a step where hpack's decoder takes two."""

from typing import TypeAlias

from hpack import HPACKDecodingError
from hpack.huffman_table import HUFFMAN_COMPLETE, HUFFMAN_EMIT_SYMBOL, HUFFMAN_FAIL, HUFFMAN_TABLE

_Step: TypeAlias = tuple[int, bytes, bool]
"""The state behind a byte, what the byte adds to the string, and whether the string may end there."""

_steps: dict[int, _Step] = {}
"""By state and byte, those that were taken: at most 256 of each, and a few hundred where strings are ids."""


def decode(content: bytes) -> bytes:
    """Return the string; raises HPACKDecodingError for what is none."""
    state, ends = 0, True
    found = []
    for byte in content:
        step = _steps.get(state << 8 | byte) or _take(state, byte)
        state, added, ends = step
        found.append(added)
    if not ends:
        raise HPACKDecodingError("a Huffman code ends early")
    return b"".join(found)


def _take(state: int, byte: int) -> _Step:
    """Go the two steps that hpack's table has for a byte."""
    at, added, flags = state, b"", 0
    for nibble in (byte >> 4, byte & 0x0F):
        at, flags, symbol = HUFFMAN_TABLE[at * 16 + nibble]
        if flags & HUFFMAN_FAIL:
            raise HPACKDecodingError("a string is no Huffman code")
        if flags & HUFFMAN_EMIT_SYMBOL:
            added += bytes((symbol,))
    _steps[state << 8 | byte] = step = (at, added, bool(flags & HUFFMAN_COMPLETE))
    return step
