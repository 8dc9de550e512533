"""Forms of what is kept of a service's answers, and of a scorer. Pure but for the order's module.

The API takes the same as JSON (`feedback.api.answers`, `feedback.api.scorers`).
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from common.errors import InvalidInput
from common.files.editor.text import document_of
from feedback.services.answers import KeepOrder

_MIB = 1 << 20
_CALLED = {
    "share_percent": "the share",
    "days": "the number of days",
    "max_rows": "the number of answers",
    "max_size_mib": "the size",
}


def keep_order(said: Mapping[str, str]) -> KeepOrder:
    """Return the form's order; empty fields take their defaults.

    Raises:
        InvalidInput: a field is no number, by its name; `KeepOrder.check` validates the rest.
    """
    order = KeepOrder()
    return KeepOrder(
        share_percent=_number(said, "share_percent", order.share_percent),
        days=_whole(said, "days", order.days),
        max_rows=_whole(said, "max_rows", order.max_rows),
        max_bytes=int(_number(said, "max_size_mib", order.max_bytes / _MIB) * _MIB),
        output=said.get("output", "").strip(),
        outputs=_names(said.get("outputs", "")),
        keeps_inputs=said.get("keeps_inputs") == "on",
        parameters=_names(said.get("parameters", "")),
    )


def scorer_options(said: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the form's options of a scorer, YAML such as `bound: 10`; none for an empty field."""
    text = said.get("options", "").strip()
    return document_of(text, what="options", begins="bound") if text else {}


def _names(text: str) -> tuple[str, ...]:
    return tuple(name for each in text.split(",") if (name := each.strip()))


def _number(said: Mapping[str, str], name: str, default: float) -> float:
    text = said.get(name, "").strip().replace(",", ".")
    if not text:
        return default
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not isfinite(value):
        raise InvalidInput(f"{_CALLED[name]} is {text[:40]!r}; expected a number", field=name)
    return value


def _whole(said: Mapping[str, str], name: str, default: int) -> int:
    value = _number(said, name, default)
    if value != int(value):
        raise InvalidInput(f"{_CALLED[name]} is {value:g}; expected a whole number", field=name)
    return int(value)
