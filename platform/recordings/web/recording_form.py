"""Order forms of a recording and of a replay. Pure but for the orders' modules.

The API takes the same as JSON (`recordings.api.recordings`, `recordings.api.replays`).
"""

from collections.abc import Mapping
from typing import Any

from common import durations
from common.errors import InvalidInput
from common.files.editor.text import document_of
from common.form_numbers import number, whole
from recordings.services.recordings import RecordingOrder

_AGREEMENT = "minAgreementPercent"
_MIB = 1 << 20


def recording_order(said: Mapping[str, str]) -> RecordingOrder:
    """Return the form's order; empty fields take their defaults.

    Raises:
        InvalidInput: a field is no number or no duration, by its name; `RecordingOrder.check` validates the rest.
    """
    order = RecordingOrder(said.get("consent", ""))
    size_mib = number(said, "max_size_mib", order.max_bytes / _MIB, called="the size")
    retention = said.get("retention", "").strip()
    return RecordingOrder(
        consent=order.consent,
        share_percent=number(said, "share_percent", order.share_percent, called="the share"),
        max_requests=whole(said, "max_requests", order.max_requests, called="the number of requests"),
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
        terms[_AGREEMENT] = number(said, "agreement", 0.0, called="the share of answers that must agree")
    return terms
