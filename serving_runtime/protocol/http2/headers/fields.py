"""HPACK field decoder: reads a block's fields like hpack's decoder, at a third of its cost (RFC 7541, section 6).

Indices and lengths of one byte are read here, as nearly all are; hpack reads longer integers and keeps the tables.
"""

from collections.abc import Sequence
from typing import TypeAlias

from hpack import HPACKDecodingError, OversizedHeaderListError
from hpack.exceptions import InvalidTableSizeError
from hpack.hpack import decode_integer
from hpack.table import HeaderTable

from serving_runtime.protocol.http2.headers import huffman

Field: TypeAlias = tuple[bytes, bytes]
Fields: TypeAlias = Sequence[Field]

_STATIC = HeaderTable.STATIC_TABLE
_ENTRY_BYTES = 32
_INTEGER_BYTES = 16
"""Longer than any integer that hpack accepts."""


class FieldDecoder:
    """Decodes the blocks of one connection in their order; raises HPACKError for an invalid one.

    Attributes:
        table: the dynamic table.
        max_table_bytes: limit for the encoder's table from now on.
        ends: where each field of the last block ended in it.
        values: where its value began; 0 for one from a table, or put into it.
    """

    def __init__(self, max_list_bytes: int) -> None:
        self.table = HeaderTable()
        self.ends: list[int] = []
        self.values: list[int] = []
        self._max_list_bytes = max_list_bytes
        self.max_table_bytes = self.table.maxsize

    def decode(self, block: bytes) -> list[Field]:
        """Return the fields of a block."""
        try:
            return self._fields(block)
        except IndexError as error:
            raise HPACKDecodingError("the block ends within a field") from error

    def _fields(self, block: bytes) -> list[Field]:
        fields: list[Field] = []
        self.ends = ends = []
        self.values = values = []
        size = 0
        at, end = 0, len(block)
        while at < end:
            first = block[at]
            if first & 0x80:  # an entry of the tables
                index, at = (first & 0x7F, at + 1) if first != 0xFF else _integer(block, at, 7)
                field = self._entry(index)
                values.append(0)
            elif first & 0x60 == 0x20:
                at = self._resize(block, at, first_in_block=not fields)
                continue
            else:
                added = first & 0x40
                mask, bits = (0x3F, 6) if added else (0x0F, 4)
                index, at = (first & mask, at + 1) if first & mask != mask else _integer(block, at, bits)
                if index:
                    name = self._entry(index)[0]
                else:
                    name, at = string(block, at)
                values.append(0 if added and self.table.maxsize else at)
                value, at = string(block, at)
                field = (name, value)
                if added:
                    self.table.add(name, value)
            fields.append(field)
            ends.append(at)
            size += _ENTRY_BYTES + len(field[0]) + len(field[1])
            if size > self._max_list_bytes:
                raise OversizedHeaderListError(f"the header list is larger than {self._max_list_bytes} bytes")
        return fields

    def _entry(self, index: int) -> Field:
        return _STATIC[index - 1] if 0 < index <= len(_STATIC) else self.table.get_by_index(index)

    def _resize(self, block: bytes, at: int, *, first_in_block: bool) -> int:
        if not first_in_block:
            raise HPACKDecodingError("the table is resized within a block")
        size_bytes, at = _integer(block, at, 5)
        if size_bytes > self.max_table_bytes:
            raise InvalidTableSizeError(f"the table is to be larger than {self.max_table_bytes} bytes")
        self.table.maxsize = size_bytes
        return at


def _integer(block: bytes, at: int, prefix_bits: int) -> tuple[int, int]:
    """Return an integer and its end."""
    number, length = decode_integer(block[at : at + _INTEGER_BYTES], prefix_bits)
    return number, at + length


def string(block: bytes, at: int) -> tuple[bytes, int]:
    """Return a string and its end; raises HPACKError or IndexError."""
    first = block[at]
    length, at = (first & 0x7F, at + 1) if first & 0x7F != 0x7F else _integer(block, at, 7)
    end = at + length
    content = block[at:end]
    if len(content) != length:
        raise HPACKDecodingError("the block ends within a string")
    return (huffman.decode(content) if first & 0x80 else content), end
