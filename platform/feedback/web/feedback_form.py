"""Forms of what is kept of a service's answers, and of a scorer. Pure but for the order's module.

The API takes the same as JSON (`feedback.api.answers`, `feedback.api.scorers`).
"""

from collections.abc import Mapping
from typing import Any

from common.files.editor.text import document_of
from common.form_numbers import number, whole
from feedback.services.answers import KeepOrder

_MIB = 1 << 20


def keep_order(said: Mapping[str, str]) -> KeepOrder:
    """Return the form's order; empty fields take their defaults.

    Raises:
        InvalidInput: a field is no number, by its name; `KeepOrder.check` validates the rest.
    """
    order = KeepOrder()
    return KeepOrder(
        share_percent=number(said, "share_percent", order.share_percent, called="the share"),
        days=whole(said, "days", order.days, called="the number of days"),
        max_rows=whole(said, "max_rows", order.max_rows, called="the number of answers"),
        max_bytes=int(number(said, "max_size_mib", order.max_bytes / _MIB, called="the size") * _MIB),
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
