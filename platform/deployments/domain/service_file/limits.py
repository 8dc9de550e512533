"""Limits of a service file: how many requests the gateway lets through to the service, and how large. Pure.

limits:
  requestsPerSecond: 200      of all callers together
  perCaller:
    requestsPerSecond: 20     of each caller
    concurrentRequests: 4     unanswered ones of each caller, in each revision
  requestBytes: 1048576       of the body of each request
limits: {}                    none
"""

from typing import Any

from common.files.document import Document
from integrations.clusters.base import MOST_PER_SECOND, Limits

FIELD = "spec.limits"
_RATE = "requestsPerSecond"
_PER_CALLER = "perCaller"
_BYTES = "requestBytes"
_CONCURRENT = "concurrentRequests"
MOST_BYTES = 64 * 1024 * 1024
"""Of a request's body where there is a limit: the gateway then has it in memory before it goes on."""
MOST_CONCURRENT = 10_000
"""Unanswered requests of a caller where there is a limit."""


def parse_limits(spec: Document) -> Limits | None:
    """Return the limits of `spec.limits`; None where the file does not say.

    Raises:
        InvalidInput: it is no object, has another field, or a number is out of range.
    """
    limits = spec.optional("limits")
    if limits is None:
        return None
    per_caller = limits.optional(_PER_CALLER)
    size = None if limits.raw(_BYTES, None) is None else limits.integer(_BYTES, minimum=1, maximum=MOST_BYTES)
    found = Limits(
        _rate(limits),
        None if per_caller is None else _rate(per_caller),
        size,
        caller_concurrent_requests=None if per_caller is None else _concurrent(per_caller),
    )
    for part in (limits, *([] if per_caller is None else [per_caller])):
        part.refuse_unknown()
    return found


def limits_json(limits: Limits) -> dict[str, Any]:
    """Return limits as the file has them."""
    whole, caller, concurrent = (
        limits.requests_per_second,
        limits.caller_requests_per_second,
        limits.caller_concurrent_requests,
    )
    of_caller = {
        **({} if caller is None else {_RATE: caller}),
        **({} if concurrent is None else {_CONCURRENT: concurrent}),
    }
    return {
        **({} if whole is None else {_RATE: whole}),
        **({_PER_CALLER: of_caller} if of_caller else {}),
        **({} if limits.request_bytes is None else {_BYTES: limits.request_bytes}),
    }


def stored_limits(value: Any) -> Limits:
    """Return the limits that `limits_json` wrote; None, of a service of before there were any, is without limits."""
    value = value or {}
    of_caller = value.get(_PER_CALLER, {})
    return Limits(
        value.get(_RATE),
        of_caller.get(_RATE),
        value.get(_BYTES),
        caller_concurrent_requests=of_caller.get(_CONCURRENT),
    )


def _rate(document: Document) -> int | None:
    if document.raw(_RATE, None) is None:
        return None
    return document.integer(_RATE, minimum=1, maximum=MOST_PER_SECOND)


def _concurrent(document: Document) -> int | None:
    if document.raw(_CONCURRENT, None) is None:
        return None
    return document.integer(_CONCURRENT, minimum=1, maximum=MOST_CONCURRENT)
