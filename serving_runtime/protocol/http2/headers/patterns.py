"""Header blocks that come again but for a few values: a deadline, an id, a trace that each request has of its own.

    fixed | value | fixed | value | fixed

Only the values between are decoded. Two blocks of the same kind show where they are; what differs must be literals
that leave the table as it is, which is so where the client was told to use none.
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
"""Fields whose values say nothing of how a request is to be answered."""


class _Pattern(NamedTuple):
    """What blocks of one kind have in common.

    Attributes:
        fields: of the last one that was decoded as a whole.
        head: what was made of them.
        content_length: of that one, in bytes; None where it told none.
        values, ends: where each of the fields' values began and ended in the last one (see FieldDecoder).
        holes: which of them differ.
        fixed: the bytes before each such value, and behind the last; empty while none is known.
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
        """Return a block's fields; None where it is none of these."""
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
        differing: the fields that differ from block to block; their names are right, their values may not be.
        head: what was made of a block that differs in values which say nothing of how to answer; None for others.
    """

    fields: list[Field]
    content_length: int | None
    differing: list[Field]
    head: Any


class Patterns:
    """The kinds of blocks of one connection, as long as its tables stay what they are."""

    def __init__(self, decoder: FieldDecoder) -> None:
        self._decoder = decoder
        self._known: dict[tuple[Field | bytes, ...], _Pattern] = {}

    def clear(self) -> None:
        self._known.clear()

    def read(self, block: bytes) -> Alike | None:
        """Return what a block says; None for one of no known kind."""
        for pattern in self._known.values():
            if pattern.fixed:
                try:
                    fields = pattern.read(block)
                except (HPACKError, IndexError):  # decoded as a whole it says what is wrong
                    return None
                if fields is not None:
                    differing = [fields[hole] for hole in pattern.holes]
                    return Alike(fields, pattern.content_length, differing, pattern.head if pattern.only_ids else None)
        return None

    def learn(self, block: bytes, fields: list[Field], content_length: int | None, head: Any) -> None:
        """Take note of the block that was decoded last, is a right request's and left the tables as they were."""
        kind = tuple([field if field[0][:1] == b":" else field[0] for field in fields])
        if kind.count(b"content-length") > 1:  # the two would have to be compared each time
            return
        before = self._known.get(kind)
        if before is None and len(self._known) >= _KEPT:
            self._known.clear()
        self._known[kind] = _differing(
            before, block, _Pattern(fields, head, content_length, self._decoder.values, self._decoder.ends)
        )


def _differing(before: _Pattern | None, block: bytes, last: _Pattern) -> _Pattern:
    """Return what the last block has in common with those before."""
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
