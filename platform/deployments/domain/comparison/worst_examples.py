"""Worst examples: the requests whose answers differ the most, shortened for storage and display. Pure.

They contain the team's data. A tensor is shortened to its first values, a text to its first characters, an exchange to
few tensors, so each takes a few kilobytes at most, whatever was sent.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import numpy as np

from common.tensors import Tensor
from deployments.domain.comparison.answers import Answer, Comparison, Tensors

KEPT = 10
_SHOWN_VALUES = 16
_SHOWN_TENSORS = 8
_SHOWN_CHARACTERS = 120


@dataclass(frozen=True, slots=True)
class Worst:
    """One request with both answers, shortened.

    Attributes:
        disagreement: the share of the answer's rows that do not agree, 0 to 1.
        excess: the largest difference as a multiple of the tolerance.
        at: ISO 8601, when the request reached stable.
        inputs, stable, shadow: tensors as `shown` gives them; an answer that is an error is {"error": sentence}.
    """

    request_id: str
    at: str
    outcome: str
    disagreement: float
    excess: float
    message: str
    inputs: Mapping[str, Any]
    stable: Mapping[str, Any]
    shadow: Mapping[str, Any]

    @property
    def rank(self) -> tuple[float, float, str, str]:
        """Return its sort key; the least is the worst."""
        return (-self.disagreement, -self.excess, self.at, self.request_id)

    def as_json(self) -> dict[str, Any]:
        """Return it for `stored`."""
        return asdict(self)


def worst_of(
    request_id: str, at: datetime, comparison: Comparison, inputs: Tensors, answers: Sequence[Answer]
) -> Worst:
    """Return a compared exchange in its stored form; `answers` are stable's and the shadow's."""
    stable, shadow = answers
    return Worst(
        request_id=storable(request_id),
        at=at.isoformat(),
        outcome=comparison.outcome.value,
        disagreement=1 - comparison.agreement,
        excess=comparison.excess,
        message=storable(comparison.message, 4 * _SHOWN_CHARACTERS),
        inputs=_shown_all(inputs),
        stable=_shown_answer(stable),
        shadow=_shown_answer(shadow),
    )


def keep(worst: Iterable[Worst]) -> tuple[Worst, ...]:
    """Return the worst of them, the very worst first, without answers that agree and have no difference."""
    return tuple(
        sorted((each for each in worst if each.disagreement or each.excess), key=lambda each: each.rank)[:KEPT]
    )


def shown(tensor: Tensor) -> dict[str, Any]:
    """Return a tensor's datatype, shape, first values and, of numbers, their range."""
    values = tensor.values
    summary: dict[str, Any] = {
        "datatype": tensor.datatype,
        "shape": list(values.shape),
        "values": [_shown_value(value) for value in values.reshape(-1)[:_SHOWN_VALUES]],
    }
    if values.dtype.kind in "iuf" and values.size:
        finite = values[np.isfinite(values)]
        if finite.size:
            summary |= {"least": _shown_value(finite.min()), "most": _shown_value(finite.max())}
    return summary


def _shown_answer(answer: Answer) -> dict[str, Any]:
    return {"error": storable(answer.error)} if answer.error is not None else _shown_all(answer.outputs)


def _shown_all(tensors: Tensors) -> dict[str, Any]:
    return {storable(name): shown(tensors[name]) for name in sorted(tensors)[:_SHOWN_TENSORS]}


def _shown_value(value: Any) -> bool | int | float | str:
    """Return a value in a form that any JSON can hold; a float to six digits."""
    if isinstance(value, bytes):
        return storable(value.decode("utf-8", "backslashreplace"))
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.integer):
        return int(value) if abs(int(value)) < 2**53 else str(value)
    return float(f"{value:.6g}") if np.isfinite(value) else str(value)


def storable(text: str, most: int = _SHOWN_CHARACTERS) -> str:
    """Return a text that any database and any JSON accepts, shortened to `most` characters."""
    text = text.replace("\x00", "\\0")  # PostgreSQL cannot store it
    text = text.encode("utf-8", "backslashreplace").decode()  # nor half a surrogate pair
    return text if len(text) <= most else text[: most - 1] + "…"
