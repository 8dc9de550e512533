"""Answer of a try-out as shown: each output in a readable form, and the best scores. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from common.tensors import Tensor

Labels = Mapping[str, Sequence[str]]
"""By output: the label of each class, in order."""

NO_LABELS: Labels = {}
_BEST = 5
_ROWS = 4
_LEAST_SCORES = 2
_EDGE = 6
_SHOWN_WHOLE = 256
_SHOWN_CHARACTERS = 2000


@dataclass(frozen=True, slots=True)
class Score:
    """One of a row's best scores; `width_percent` of the longest bar, `label` empty where the class has none."""

    index: int
    label: str
    text: str
    width_percent: float


@dataclass(frozen=True, slots=True)
class Shown:
    """An output.

    Attributes:
        best: the best scores of each shown row; empty where the output has no scores.
        rows: the number of rows of scores.
        text: its values, without the middle of many.
    """

    name: str
    datatype: str
    shape: tuple[int, ...]
    text: str
    best: tuple[tuple[Score, ...], ...] = ()
    rows: int = 0


def shown(outputs: Mapping[str, Tensor], labels: Labels = NO_LABELS) -> list[Shown]:
    """Return the outputs in the order of the answer."""
    return [_shown(name, tensor, labels.get(name, ())) for name, tensor in outputs.items()]


def _shown(name: str, tensor: Tensor, labels: Sequence[str]) -> Shown:
    values = tensor.values
    best: tuple[tuple[Score, ...], ...] = ()
    rows = 0
    if _are_scores(values):
        table = values.reshape(-1, values.shape[-1]).astype(np.float64)
        rows = len(table)
        best = tuple(_best(row, labels) for row in table[:_ROWS])
    return Shown(name, tensor.datatype, values.shape, _text(values), best, rows)


def _are_scores(values: NDArray[Any]) -> bool:
    is_table = values.ndim in (1, 2) and values.size > 0 and values.shape[-1] >= _LEAST_SCORES
    return is_table and values.dtype.kind == "f" and bool(np.isfinite(values).all())


def _best(row: NDArray[Any], labels: Sequence[str]) -> tuple[Score, ...]:
    order = np.argsort(-row, kind="stable")[:_BEST]
    is_share = bool(row.min() >= 0 and row.max() <= 1 and abs(row.sum() - 1) < 1e-3)
    low, high = (0.0, 1.0) if is_share else (min(0.0, float(row.min())), float(row.max()))
    width = high - low
    return tuple(
        Score(
            int(index),
            labels[index] if index < len(labels) else "",
            f"{100 * row[index]:.1f}\u00a0%" if is_share else f"{row[index]:.4g}",
            round(100 * float(row[index] - low) / width, 1) if width else 0.0,
        )
        for index in order
    )


def _text(values: NDArray[Any]) -> str:
    if values.dtype == object:
        values = np.array([_decoded(each) for each in values.ravel()], object).reshape(values.shape)
    text = np.array2string(
        values, separator=", ", threshold=_SHOWN_WHOLE, edgeitems=_EDGE, max_line_width=88, precision=6
    )
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]} …"


def _decoded(element: object) -> object:
    return element.decode("utf-8", "replace") if isinstance(element, bytes) else element
