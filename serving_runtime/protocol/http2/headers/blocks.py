"""HPACK header blocks: decoding to checked fields, and encoding (RFC 7541; RFC 9113, section 8). Pure.

Clients repeat the same few blocks. As long as a block leaves the dynamic table unchanged, the same bytes mean the same
fields, so results are kept until a block changes the table; of blocks that repeat but for some values, only those
values are decoded.
"""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

import hpack

from serving_runtime.protocol.http2.frames import ConnectionFailure, ErrorCode
from serving_runtime.protocol.http2.headers.fields import Field, FieldDecoder, Fields
from serving_runtime.protocol.http2.headers.patterns import Patterns
from serving_runtime.protocol.http2.headers.rules import check_request, check_trailers, check_value, content_length_in

Head = TypeVar("Head")

MAX_HEADER_LIST_BYTES = 64 * 1024

NO_TABLE = b"\x20"
"""Beginning of a block whose sender reduces its table to 0 bytes (RFC 7541, section 6.3)."""

_KEPT_BLOCKS = 64
_KEPT_BYTES = 1024
"""Limit of one kept block: longer ones are decoded every time."""


class HeaderReader(Generic[Head]):
    """Decodes the header blocks of one connection, in the order in which they came.

    Args:
        interpret: converts a request's fields for its stream; called once for blocks that repeat. It also gets its
            result for fields that differ only in ids and the like, None without one.

    Attributes:
        changes: how many blocks have changed the table.
    """

    def __init__(self, interpret: Callable[[Fields, Head | None], Head]) -> None:
        self.changes = 0
        self._interpret = interpret
        self._decoder = FieldDecoder(MAX_HEADER_LIST_BYTES)
        self._patterns = Patterns(self._decoder)
        self._kept: dict[bytes, tuple[Head, int | None]] = {}
        self._checked: set[Field] = set()

    def refuse_table(self) -> None:
        """Forbid the table from now on: the client has read that it must use none."""
        self._decoder.max_table_bytes = 0

    def request(self, block: bytes) -> tuple[Head, int | None]:
        """Return the result of `interpret` for a request's headers, and its content-length in bytes where it has one.

        Raises ConnectionFailure for a block that cannot be decoded, StreamFailure for invalid fields.
        """
        kept = self._kept.get(block)
        if kept is not None:
            return kept
        alike = self._patterns.read(block) if len(block) <= _KEPT_BYTES else None
        if alike is not None:
            fields, content_length, differing, head = alike
            for name, value in differing:
                check_value(name, value)
                if name == b"content-length":
                    content_length = content_length_in(value)
            return self._interpret(fields, head), content_length
        fields, repeats = self._decode(block)
        content_length = check_request(fields, self._checked)
        found = self._interpret(fields, None), content_length
        if repeats and len(block) <= _KEPT_BYTES:
            self._patterns.learn(block, fields, content_length, found[0])
            if len(self._kept) < _KEPT_BLOCKS:
                self._kept[block] = found
        return found

    def trailers(self, block: bytes) -> Fields:
        """Return a request's trailers; raises like `request`."""
        fields, _ = self._decode(block)
        check_trailers(fields)
        return fields

    def skip(self, block: bytes) -> None:
        """Decode an unused block: later ones are encoded relative to it."""
        self._decode(block)

    def _decode(self, block: bytes) -> tuple[list[Field], bool]:
        """Return the fields, and whether the same bytes would decode to the same fields again."""
        table = self._decoder.table
        entries = table.dynamic_entries
        before = (table.maxsize, len(entries), entries[0] if entries else None)
        try:
            fields = self._decoder.decode(block)
        except hpack.OversizedHeaderListError as error:
            raise ConnectionFailure(
                ErrorCode.ENHANCE_YOUR_CALM, f"headers are larger than {MAX_HEADER_LIST_BYTES} bytes"
            ) from error
        except hpack.HPACKError as error:
            raise ConnectionFailure(ErrorCode.COMPRESSION_ERROR, f"headers cannot be decoded: {error}") from error
        newest = entries[0] if entries else None
        repeats = before[:2] == (table.maxsize, len(entries)) and before[2] is newest
        if not repeats:
            self.changes += 1
            self._kept.clear()
            self._patterns.clear()
        return fields, repeats


def encode(fields: Iterable[Field]) -> bytes:
    """Return the fields as literals that use no table: every block is independent and may be made in advance."""
    return b"".join(
        b"\x00" + _length(len(name)) + name + _length(len(value)) + value  # literal without indexing, new name
        for name, value in fields
    )


def _length(number: int) -> bytes:
    """Return the length prefix of a string that is not Huffman-coded (RFC 7541, section 5.1, 7-bit prefix)."""
    if number < 127:
        return bytes((number,))
    number -= 127
    found = bytearray(b"\x7f")
    while number >= 128:
        found.append(number % 128 + 128)
        number //= 128
    found.append(number)
    return bytes(found)
