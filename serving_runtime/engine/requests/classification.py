"""Classification (Triton: classification extension): outputs as their highest classes, "value:index[:label]"."""

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from serving_runtime.common import side_thread
from serving_runtime.common.datatypes import BF16, BYTES, Array, from_bf16
from serving_runtime.common.errors import InvalidArgument, ServingError
from serving_runtime.common.request import OnDone, Outcome, Tensor
from serving_runtime.config.tensors import ModelTensor

Labels = Mapping[str, Sequence[str]]
"""By output: the label of each class, in order."""

NO_LABELS: Labels = {}

_SLOW_ELEMENTS = 64 * 1024
"""Elements above which the classes are sorted off the event loop."""


def check(classes: Mapping[str, int], outputs: Sequence[ModelTensor]) -> None:
    """Raise InvalidArgument unless each output requested as classes exists and holds numbers."""
    datatypes = {output.name: output.datatype for output in outputs}
    for name, count in classes.items():
        if name not in datatypes:
            raise InvalidArgument(f"unexpected inference output '{name}'; its classes cannot be given")
        if datatypes[name] is BYTES:
            raise InvalidArgument(f"output '{name}' is BYTES, which has no classes")
        if count < 1:
            raise InvalidArgument(f"output '{name}': classification must be >= 1, found {count}")


def answering(classes: Mapping[str, int], labels: Labels, on_done: OnDone, *, batched: bool) -> OnDone:
    """Return a callback that converts some outputs to their highest classes before it calls `on_done`.

    Those outputs become BYTES of shape [batch, classes], or [classes] for a model without a batch dimension.
    """

    def is_long(outcome: Outcome) -> bool:
        return not isinstance(outcome, ServingError) and any(
            output.name in classes and output.array.size > _SLOW_ELEMENTS for output in outcome.outputs
        )

    def classified(outcome: Outcome) -> Outcome:
        if isinstance(outcome, ServingError):
            return outcome
        outputs = [
            _classified(output, classes[output.name], labels, batched=batched) if output.name in classes else output
            for output in outcome.outputs
        ]
        return outcome._replace(outputs=tuple(outputs))

    return side_thread.InOrder(is_long, classified, lambda _outcome, found: on_done(found)).take


def highest(array: Array, count: int, labels: Sequence[str], *, batched: bool) -> Array:
    """Return up to `count` classes of each row, the highest first, equal ones by index.

    Args:
        array: [batch, ...] where batched, else one row of any shape; a row is taken flat.
    """
    rows = array.reshape((array.shape[0], prod(array.shape[1:])) if batched else (1, array.size))
    count = min(count, rows.shape[1])
    found = np.empty((rows.shape[0], count), dtype=object)
    for number, row in enumerate(rows):
        order = np.argsort(row[::-1], kind="stable")[::-1]  # among equal ones the first comes first
        for place, index in enumerate((row.size - 1 - order)[:count].tolist()):
            found[number, place] = _described(row[index].item(), index, labels)
    return found if batched else found[0]


def _classified(output: Tensor, count: int, labels: Labels, *, batched: bool) -> Tensor:
    array = highest(_numbers(output), count, labels.get(output.name, ()), batched=batched)
    return Tensor(output.name, BYTES, array)


def _described(value: float, index: int, labels: Sequence[str]) -> bytes:
    text = f"{value:f}:{index}" if isinstance(value, float) else f"{int(value)}:{index}"
    return (f"{text}:{labels[index]}" if index < len(labels) else text).encode()


def _numbers(output: Tensor) -> Array:
    return from_bf16(output.array) if output.datatype is BF16 else output.array
