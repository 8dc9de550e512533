"""Header blocks that come again but for a few values: a deadline, an id, a trace that each request has of its own.

    fixed | value | fixed | value | fixed

Only the values between are decoded. Two blocks of the same kind show where they are; what differs must be literals
that leave the table as it is, which is so where the client was told to use none.
"""

from collections.abc import Sequence
from typing import NamedTuple

from hpack import HPACKError

from serving_runtime.protocol.headers.fields import Field, FieldDecoder, string

_KEPT = 8
_MOST_HOLES = 4


class _Pattern(NamedTuple):
    """What blocks of one kind have in common.

    Attributes:
        fields: of the last one that was decoded as a whole.
        content_length: of that one, in bytes; None where it told none.
        values, ends: where each of the fields' values began and ended in the last one (see FieldDecoder).
        holes: which of them differ.
        fixed: the bytes before each such value, and behind the last; empty while none is known.
    """

    fields: list[Field]
    content_length: int | None
    values: list[int]
    ends: list[int]
    holes: tuple[int, ...] = ()
    fixed: tuple[bytes, ...] = ()

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
        content_length: where that field is no hole.
        holes: which of the fields differ from block to block.
    """

    fields: list[Field]
    content_length: int | None
    holes: Sequence[int]


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
                    return Alike(fields, pattern.content_length, pattern.holes)
        return None

    def learn(self, block: bytes, fields: list[Field], content_length: int | None) -> None:
        """Take note of the block that was decoded last, is a right request's and left the tables as they were."""
        kind = tuple([field if field[0][:1] == b":" else field[0] for field in fields])
        if kind.count(b"content-length") > 1:  # the two would have to be compared each time
            return
        before = self._known.get(kind)
        if before is None and len(self._known) >= _KEPT:
            self._known.clear()
        self._known[kind] = _differing(
            before, block, _Pattern(fields, content_length, self._decoder.values, self._decoder.ends)
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
    return last._replace(holes=holes, fixed=tuple(fixed))
