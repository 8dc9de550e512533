"""Header block patterns: reuse of blocks that repeat but for a few values, such as a request's deadline, id or trace.

    fixed | value | fixed | value | fixed

Only the values between are decoded. Two blocks of the same kind show where they are; the differing fields must be
literals that leave the table unchanged, as they are where the client uses none.
"""

from typing import Any, NamedTuple

from hpack import HPACKError

from serving_runtime.protocol.http2.headers.fields import Field, FieldDecoder, string

_KEPT = 8
_MOST_HOLES = 4

_IDS = frozenset(
    {
        *(b"x-request-id", b"traceparent", b"tracestate"),
        *(b"x-forwarded-for", b"x-envoy-external-address", b"content-length"),
    }
)
"""Fields whose values do not affect how a request is answered."""


class _Pattern(NamedTuple):
    """Common part of blocks of one kind.

    Attributes:
        fields: of the last one that was decoded as a whole.
        head: the result for these fields.
        content_length: of that one, in bytes; None without one.
        values, ends: where each of the fields' values began and ended in the last one (see FieldDecoder).
        holes: which of them differ.
        fixed: the bytes before each such value, and after the last; empty while none is known.
        only_ids: whether the holes are all of _IDS.
    """

    fields: list[Field]
    head: Any
    content_length: int | None
    values: list[int]
    ends: list[int]
    holes: tuple[int, ...] = ()
    fixed: tuple[bytes, ...] = ()
    only_ids: bool = False

    def read(self, block: bytes) -> list[Field] | None:
        """Return a block's fields; None where it does not match."""
        fields = self.fields.copy()
        at = 0
        for hole, fixed in zip(self.holes, self.fixed, strict=False):  # there is one more of the second
            if not block.startswith(fixed, at):
                return None
            value, at = string(block, at + len(fixed))
            fields[hole] = (fields[hole][0], value)
        return fields if block[at:] == self.fixed[-1] else None


class Alike(NamedTuple):
    """A block of a known kind.

    Attributes:
        content_length: where that field does not differ.
        differing: the fields that differ from block to block; their names are valid, their values may not be.
        head: the result for a block that differs only in values which do not affect the answer; None for others.
    """

    fields: list[Field]
    content_length: int | None
    differing: list[Field]
    head: Any


class Patterns:
    """The kinds of blocks of one connection, valid until its table changes."""

    def __init__(self, decoder: FieldDecoder) -> None:
        self._decoder = decoder
        self._known: dict[tuple[Field | bytes, ...], _Pattern] = {}

    def clear(self) -> None:
        self._known.clear()

    def read(self, block: bytes) -> Alike | None:
        """Return a block's fields; None for an unknown kind."""
        for pattern in self._known.values():
            if pattern.fixed:
                try:
                    fields = pattern.read(block)
                except (HPACKError, IndexError):  # decoding the whole block reports the error
                    return None
                if fields is not None:
                    differing = [fields[hole] for hole in pattern.holes]
                    return Alike(fields, pattern.content_length, differing, pattern.head if pattern.only_ids else None)
        return None

    def learn(self, block: bytes, fields: list[Field], content_length: int | None, head: Any) -> None:
        """Record the last decoded block, which is a valid request's and left the tables unchanged."""
        kind = tuple([field if field[0][:1] == b":" else field[0] for field in fields])
        if kind.count(b"content-length") > 1:  # both would have to be compared each time
            return
        before = self._known.get(kind)
        if before is None and len(self._known) >= _KEPT:
            self._known.clear()
        self._known[kind] = _differing(
            before, block, _Pattern(fields, head, content_length, self._decoder.values, self._decoder.ends)
        )


def _differing(before: _Pattern | None, block: bytes, last: _Pattern) -> _Pattern:
    """Return the common part of the last block and those before."""
    if before is None:
        return last
    others = (number for number, field in enumerate(last.fields) if field != before.fields[number])
    holes = tuple(sorted({*before.holes, *others}))
    begins = [last.values[hole] for hole in holes]
    if not 0 < len(holes) <= _MOST_HOLES or not all(begins):
        return last
    ends = [last.ends[hole] for hole in holes]
    fixed = [block[end:begin] for end, begin in zip([0, *ends], [*begins, len(block)], strict=True)]
    only_ids = all(last.fields[hole][0] in _IDS for hole in holes)
    return last._replace(holes=holes, fixed=tuple(fixed), only_ids=only_ids)
