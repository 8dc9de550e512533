"""Signature compatibility: breaking and harmless changes for clients when a new signature replaces an old one. Pure.

Clients send every required input and may send the optional ones, of any shape that the old signature allows, up to its
rows per request; they read any output. What the new one does not accept or return of that breaks them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from registry.domain.signature import Signature, Tensor


@dataclass(frozen=True, slots=True)
class Comparison:
    """Effects on a client of the old signature, one sentence each.

    Attributes:
        breaks: what would fail or be misread.
        notes: harmless changes.
    """

    breaks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def compare(old: Signature, new: Signature) -> Comparison:
    """Return the changes for clients of `old` when `new` replaces it."""
    found = [*_rows(old, new), *_inputs(old, new), *_outputs(old, new)]
    return Comparison(
        breaks=tuple(sentence for breaks, sentence in found if breaks),
        notes=tuple(sentence for breaks, sentence in found if not breaks),
    )


_Found = Iterator[tuple[bool, str]]
"""Whether it breaks clients, and the sentence."""


def _rows(old: Signature, new: Signature) -> _Found:
    before, after = old.max_batch_size, new.max_batch_size
    # 0 is a model without batches, whose shapes have no batch dimension: they are compared like all shapes.
    if before and after and before != after:
        yield after < before, f"a request may have {after} rows, {before} before"


def _inputs(old: Signature, new: Signature) -> _Found:
    offered = {tensor.name: tensor for tensor in new.inputs}
    for before in old.inputs:
        after = offered.pop(before.name, None)
        if after is None:
            yield True, f"input {before.name!r} is not taken any more"
            continue
        if after.datatype != before.datatype:
            yield True, f"input {before.name!r} takes {after.datatype}, clients send {before.datatype}"
        if after.shape != before.shape:
            yield _changed_shape(before, after)
        if before.optional and not after.optional:
            yield True, f"input {before.name!r} is needed, and was optional before"
        if after.optional and not before.optional:
            yield False, f"input {before.name!r} may be left out"
    for tensor in offered.values():
        if tensor.optional:
            yield False, f"input {tensor.name!r} is new and may be left out"
        else:
            yield True, f"input {tensor.name!r} is needed, and was not there before"


def _changed_shape(before: Tensor, after: Tensor) -> tuple[bool, str]:
    if covers(after.shape, before.shape):
        return False, f"input {before.name!r} takes {_shape(after)}, more than {_shape(before)} before"
    return True, f"input {before.name!r} takes {_shape(after)}, clients send {_shape(before)}"


def _outputs(old: Signature, new: Signature) -> _Found:
    given = {tensor.name: tensor for tensor in new.outputs}
    for before in old.outputs:
        after = given.pop(before.name, None)
        if after is None:
            yield True, f"output {before.name!r} is not given any more"
            continue
        if after.datatype != before.datatype:
            yield True, f"output {before.name!r} is {after.datatype}, clients read {before.datatype}"
        if after.shape != before.shape:
            breaks = not covers(before.shape, after.shape)
            rest = f"clients read {_shape(before)}" if breaks else f"one of {_shape(before)} before"
            yield breaks, f"output {before.name!r} has shape {_shape(after)}, {rest}"
    for name in given:
        yield False, f"output {name!r} is new"


def covers(wide: Sequence[int], narrow: Sequence[int]) -> bool:
    """Return whether every shape that fits `narrow` fits `wide`."""
    return len(wide) == len(narrow) and all(w in (-1, n) for w, n in zip(wide, narrow, strict=True))


def _shape(tensor: Tensor) -> str:
    return "[" + ",".join(map(str, tensor.shape)) + "]"
