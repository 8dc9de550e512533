"""Protobuf wire format: reads and writes serialized messages by field, without message objects (protobuf: encoding)."""

from collections.abc import Iterator

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5

_FIXED_BYTES = {FIXED64: 8, FIXED32: 4}


class MalformedError(ValueError):
    """The bytes are not a message."""


def fields(content: memoryview) -> Iterator[tuple[int, int, int, int]]:
    """Yield each field's number, wire type and value; raises MalformedError.

    The value of a varint is the number and its end offset; of all others, the start and end of its bytes.
    """
    at, end = 0, len(content)
    while at < end:
        key, at = _varint(content, at, end)
        kind = key & 7
        if kind == VARINT:
            value, at = _varint(content, at, end)
            yield key >> 3, kind, value, at
            continue
        size = _FIXED_BYTES.get(kind, -1)
        if kind == BYTES:
            size, at = _varint(content, at, end)
        if not 0 <= size <= end - at:
            raise MalformedError("a field ends behind its message, or is of no kind that is known")
        yield key >> 3, kind, at, at + size
        at += size


def varints(content: memoryview) -> list[int]:
    """Return the numbers of a packed field; raises MalformedError."""
    found, at = [], 0
    while at < len(content):
        value, at = _varint(content, at, len(content))
        found.append(value)
    return found


def written(number: int, kind: int, value: bytes | memoryview) -> bytes:
    """Return a field of any kind but a varint."""
    length = _written_number(len(value)) if kind == BYTES else b""
    return b"".join((_written_number(number << 3 | kind), length, value))


def written_varint(number: int, value: int) -> bytes:
    """Return a field with a non-negative number."""
    return _written_number(number << 3 | VARINT) + _written_number(value)


def _written_number(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _varint(content: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end and shift < 70:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise MalformedError("a number does not end")
