"""Top class and score of each row of an output. Pure.

Values come from models and clients: what a JSON column cannot hold, such as NaN or a zero byte, is replaced.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from common.tensors import Array, Tensor

MOST_ROWS = 64
MOST_CLASS_CHARACTERS = 200
MOST_PARAMETER_CHARACTERS = 64
_INTEGER_BITS = 64

Top = list[list[object]]


def top_of(output: Tensor) -> Top:
    """Return [class, score] of the first 64 rows: the place of the largest value of the last axis, and that value.

    A row is one value where the output has one axis, or a last axis of length 1: of FP [0, value], as of a regression;
    of whole numbers [value, value], which are classes and values; of BYTES [text, 1.0]. A score is None where it is
    not finite.
    """
    values = output.values
    if not values.size:
        return []
    rows = values.reshape(-1, values.shape[-1] if values.ndim > 1 else 1)[:MOST_ROWS]
    if output.datatype == "BYTES":
        return [[clean_text(bytes(row[0]).decode("utf-8", "replace"), MOST_CLASS_CHARACTERS), 1.0] for row in rows]
    if rows.shape[1] == 1:
        return [_single(value) for value in rows[:, 0]]
    places = _largest(rows)
    return [[int(place), _score(row[place])] for place, row in zip(places, rows, strict=True)]


def parameters_of(request: Mapping[str, object], names: Sequence[str]) -> dict[str, str]:
    """Return those of a request's parameters that are named, as text; lists and objects are left out."""
    found = request.get("parameters")
    if not isinstance(found, Mapping):
        return {}
    texts = {name: _text(found.get(name)) for name in names}
    return {name: clean_text(text, MOST_PARAMETER_CHARACTERS) for name, text in texts.items() if text is not None}


def clean_text(text: str, most: int) -> str:
    """Return the beginning of a text, without what databases refuse: zero bytes and halves of surrogate pairs."""
    return text[:most].encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def _largest(rows: Array) -> Array:
    if rows.dtype.kind == "f":
        rows = np.where(np.isnan(rows), -np.inf, rows)
    places: Array = np.argmax(rows, axis=1)
    return places


def _single(value: np.generic) -> list[object]:
    if value.dtype.kind == "f":
        return [0, _score(value)]
    return [int(value), int(value)]


def _score(value: np.generic) -> float | None:
    """Return a number in the fewest digits that its type needs; None where it is not finite."""
    if value.dtype.kind != "f":
        return float(value)
    return float(str(value)) if np.isfinite(value) else None


def _text(value: object) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _INTEGER_BITS else None
    return str(value) if isinstance(value, float) else None
