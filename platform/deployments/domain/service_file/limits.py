"""Rate limits of a service file: how many requests the gateway lets through to the service. Pure.

limits:
  requestsPerSecond: 200      of all callers together
  perCaller:
    requestsPerSecond: 20     of each caller
limits: {}                    none
"""

from typing import Any

from common.files.document import Document
from integrations.clusters.base import MOST_PER_SECOND, Limits

FIELD = "spec.limits"
_RATE = "requestsPerSecond"
_PER_CALLER = "perCaller"


def parse_limits(spec: Document) -> Limits | None:
    """Return the limits of `spec.limits`; None where the file does not say.

    Raises:
        InvalidInput: it is no object, has another field, or a number is out of range.
    """
    limits = spec.optional("limits")
    if limits is None:
        return None
    per_caller = limits.optional(_PER_CALLER)
    found = Limits(_rate(limits), None if per_caller is None else _rate(per_caller))
    for part in (limits, *([] if per_caller is None else [per_caller])):
        part.refuse_unknown()
    return found


def limits_json(limits: Limits) -> dict[str, Any]:
    """Return limits as the file has them."""
    whole, caller = limits.requests_per_second, limits.caller_requests_per_second
    return {
        **({} if whole is None else {_RATE: whole}),
        **({} if caller is None else {_PER_CALLER: {_RATE: caller}}),
    }


def stored_limits(value: Any) -> Limits:
    """Return the limits that `limits_json` wrote; None, of a service of before there were any, is without limits."""
    value = value or {}
    return Limits(value.get(_RATE), value.get(_PER_CALLER, {}).get(_RATE))


def _rate(document: Document) -> int | None:
    if document.raw(_RATE, None) is None:
        return None
    return document.integer(_RATE, minimum=1, maximum=MOST_PER_SECOND)
