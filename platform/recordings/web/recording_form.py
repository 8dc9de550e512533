"""Order forms of a recording and of a replay. Pure but for the orders' modules.

The API takes the same as JSON (`recordings.api.recordings`, `recordings.api.replays`).
"""

from collections.abc import Mapping
from math import isfinite
from typing import Any

from common import durations
from common.errors import InvalidInput
from common.files.editor.text import document_of
from recordings.services.recordings import RecordingOrder

_AGREEMENT = "minAgreementPercent"
_MIB = 1 << 20
_CALLED = {
    "share_percent": "the share",
    "max_requests": "the number of requests",
    "max_size_mib": "the size",
    "agreement": "the share of answers that must agree",
}


def recording_order(said: Mapping[str, str]) -> RecordingOrder:
    """Return the form's order; empty fields take their defaults.

    Raises:
        InvalidInput: a field is no number or no duration, by its name; `RecordingOrder.check` validates the rest.
    """
    order = RecordingOrder(said.get("consent", ""))
    size_mib = _number(said, "max_size_mib", order.max_bytes / _MIB)
    retention = said.get("retention", "").strip()
    return RecordingOrder(
        consent=order.consent,
        share_percent=_number(said, "share_percent", order.share_percent),
        max_requests=_whole(said, "max_requests", order.max_requests),
        max_bytes=int(size_mib * _MIB),
        retention=durations.parse(retention, field="retention") if retention else order.retention,
    )


def replay_terms_said(said: Mapping[str, str]) -> dict[str, Any]:
    """Return the form's `comparison`: its field, and the YAML of all else.

    Raises:
        InvalidInput: the text is no YAML, the field no number, or both set it.
    """
    text = said.get("comparison", "").strip()
    terms = dict(document_of(text, what="comparison", begins="tolerances")) if text else {}
    if said.get("agreement", "").strip():
        if _AGREEMENT in terms:
            raise InvalidInput(
                f"{_AGREEMENT} is in the YAML and in its own field; leave one of the two empty", field="agreement"
            )
        terms[_AGREEMENT] = _number(said, "agreement", 0.0)
    return terms


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
