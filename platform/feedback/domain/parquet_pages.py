"""Headers of the pages of a Parquet column chunk: what the pages unpack to.

Parquet: `PageHeader` in Thrift's compact protocol; only its sizes and numbers of values are read, the rest is skipped.
"""

from common.errors import InvalidInput

_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_UNCOMPRESSED, _COMPRESSED = 2, 3
_HEADERS = {5: "data", 7: "dictionary", 8: "data"}
"""Fields with the header of a kind of page, whose first field is the number of values."""
_MOST_PAGES = 100_000
_DEEPEST = 8
_LONGEST_VARINT = 10


class _Reader:
    """Compact protocol, read from `at` on; raises IndexError at the end of the bytes."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.at = 0

    def byte(self) -> int:
        value = self.content[self.at]
        self.at += 1
        return value

    def varint(self) -> int:
        value = 0
        for shift in range(0, 7 * _LONGEST_VARINT, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise _damaged()

    def integer(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def skip_bytes(self, count: int) -> None:
        if count > len(self.content) - self.at:
            raise _damaged()
        self.at += count

    def fields(self, depth: int) -> "dict[int, int | dict[int, object]]":
        """Return the integers and structures of a structure by the numbers of their fields."""
        if depth > _DEEPEST:
            raise _damaged()
        found: dict[int, int | dict[int, object]] = {}
        number = 0
        while kind_byte := self.byte():
            step, kind = kind_byte >> 4, kind_byte & 15
            number = number + step if step else self.integer()
            if kind in (_I16, _I32, _I64):
                found[number] = self.integer()
            elif kind == _STRUCT:
                found[number] = self.fields(depth + 1)  # type: ignore[assignment]
            else:
                self.skip(kind)
        return found

    def skip(self, kind: int) -> None:
        if kind in (_TRUE, _FALSE):
            return
        if kind == _BYTE:
            self.byte()
        elif kind == _DOUBLE:
            self.skip_bytes(8)
        elif kind == _BINARY:
            self.skip_bytes(self.varint())
        else:
            raise _damaged()  # a page header has no lists, sets or maps


def check_pages(chunk: bytes, *, most_values: int) -> int:
    """Return how many bytes the pages of a column chunk unpack to, by their headers.

    Raises:
        InvalidInput: a header is damaged, or a page has more values than a file may have.
    """
    reader, unpacked = _Reader(chunk), 0
    for _ in range(_MOST_PAGES):
        if reader.at >= len(chunk):
            return unpacked
        try:
            header = reader.fields(0)
        except IndexError as error:
            raise _damaged() from error
        sizes = header.get(_UNCOMPRESSED), header.get(_COMPRESSED)
        if not isinstance(sizes[0], int) or not isinstance(sizes[1], int) or min(sizes) < 0:  # type: ignore[type-var]
            raise _damaged()
        for number in _HEADERS:
            page = header.get(number)
            values = page.get(1, 0) if isinstance(page, dict) else 0
            if not isinstance(values, int) or not 0 <= values <= most_values:
                raise InvalidInput("the Parquet file has a page of more values than labels have", field="labels")
        unpacked += sizes[0]
        reader.skip_bytes(sizes[1])
    raise InvalidInput("the Parquet file has too many pages", field="labels")


def _damaged() -> InvalidInput:
    return InvalidInput("the Parquet file has a damaged page header", field="labels")
