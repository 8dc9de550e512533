"""Features of a request and its answer: named numbers and classes, whose shape is watched. Pure.

Tensors come from clients and models: rows, columns, names and texts are bounded here, and nothing is raised.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt

from common.tensors import Array, Tensor

MOST_FEATURES = 64
MOST_ROWS = 64
MOST_COLUMNS = 32
MOST_NAME_CHARACTERS = 100
MOST_CLASS_CHARACTERS = 40

Floats = npt.NDArray[np.float64]


class Kind(StrEnum):
    """What the values of a feature are."""

    NUMBER = "number"
    CLASS = "class"


class Source(StrEnum):
    """Where a feature comes from."""

    INPUT = "input"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True)
class Feature:
    """The name of a feature, in words, with where it comes from and what its values are."""

    name: str
    source: Source
    kind: Kind


Values = Floats | list[str]
Found = dict[Feature, Values]


def features_of(inputs: Mapping[str, Tensor], output: tuple[str, Tensor] | None) -> Found:
    """Return the features of a request's first 64 rows: of the scored output first, then of the inputs, at most 64."""
    found: Found = {}
    if output is not None:
        found |= _of_output(clean(output[0], MOST_NAME_CHARACTERS), output[1])
    for name, tensor in inputs.items():
        if len(found) >= MOST_FEATURES:
            break
        taken = {feature.name for feature in found}
        more = _of_input(clean(name, MOST_NAME_CHARACTERS), tensor)
        found |= {feature: values for feature, values in more.items() if feature.name not in taken}
    return dict(list(found.items())[:MOST_FEATURES])


def clean(text: str, most: int) -> str:
    """Return the beginning of a text with everything replaced that a page or a database may not show."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text[:most])


def _of_output(name: str, tensor: Tensor) -> Found:
    rows = _rows(tensor)
    if rows is None:
        return {}
    classes = Feature(f"class of {name}", Source.ANSWER, Kind.CLASS)
    if tensor.datatype == "BYTES":
        return {classes: _texts(rows[:, 0])}
    if rows.shape[1] > 1:
        scores = rows.astype(np.float64)
        places = np.argmax(np.where(np.isnan(scores), -np.inf, scores), axis=1)
        best = scores[np.arange(len(places)), places]
        return {classes: [str(place) for place in places], _number(f"score of {name}", Source.ANSWER): best}
    if rows.dtype.kind == "f":
        return {_number(f"value of {name}", Source.ANSWER): rows[:, 0].astype(np.float64)}
    return {classes: [str(int(value)) for value in rows[:, 0]]}


def _of_input(name: str, tensor: Tensor) -> Found:
    rows = _rows(tensor)
    if rows is None:
        return {}
    if tensor.datatype == "BYTES":
        column = rows[:, 0]
        lengths = np.array([len(text) for text in column], float)
        texts = {} if lengths.max() > MOST_CLASS_CHARACTERS else {_class(name): _texts(column)}
        return {_number(f"length of {name}", Source.INPUT): lengths} | texts
    if rows.shape[1] <= MOST_COLUMNS:
        names = [name] if rows.shape[1] == 1 else [f"{name}[{column}]" for column in range(rows.shape[1])]
        numbers = rows.astype(np.float64)
        return {_number(each, Source.INPUT): numbers[:, column] for column, each in enumerate(names)}
    with np.errstate(all="ignore"):
        numbers = rows.astype(np.float64)
        return {
            _number(f"mean of {name}", Source.INPUT): numbers.mean(axis=1),
            _number(f"deviation of {name}", Source.INPUT): numbers.std(axis=1),
            _number(f"share of zeros of {name}", Source.INPUT): (numbers == 0).mean(axis=1),
        }


def _rows(tensor: Tensor) -> Array | None:
    """Return the first rows, each flat; None of an empty tensor. The first axis is the batch where there are two."""
    values = tensor.values
    if not values.size:
        return None
    count = values.shape[0] if values.ndim else 1
    return values[:MOST_ROWS].reshape(min(count, MOST_ROWS), -1) if values.ndim else values.reshape(1, 1)


def _texts(column: Array) -> list[str]:
    return [
        clean(bytes(text[: 4 * MOST_CLASS_CHARACTERS]).decode("utf-8", "replace"), MOST_CLASS_CHARACTERS)
        for text in column
    ]


def _number(name: str, source: Source) -> Feature:
    return Feature(name, source, Kind.NUMBER)


def _class(name: str) -> Feature:
    return Feature(f"text of {name}", Source.INPUT, Kind.CLASS)
