"""Limits of a service file: how many requests and rows the gateway lets through to the service, and how large. Pure.

limits:
  requestsPerSecond: 200      of all callers together
  rowsPerMinute: 600000
  perCaller:
    requestsPerSecond: 20     of each caller
    rowsPerMinute: 60000
    concurrentRequests: 4     unanswered ones of each caller, in each revision
  requestBytes: 1048576       of the body of each request
limits: {}                    none
"""

from typing import Any

from common.files.document import Document
from integrations.clusters.base import MOST_PER_SECOND, MOST_ROWS_PER_MINUTE, Limits

FIELD = "spec.limits"
_RATE = "requestsPerSecond"
_ROWS = "rowsPerMinute"
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
    found = Limits(
        requests_per_second=_rate(limits),
        caller_requests_per_second=None if per_caller is None else _rate(per_caller),
        request_bytes=_number(limits, _BYTES, MOST_BYTES),
        rows_per_minute=_rows(limits),
        caller_rows_per_minute=None if per_caller is None else _rows(per_caller),
        caller_concurrent_requests=None if per_caller is None else _number(per_caller, _CONCURRENT, MOST_CONCURRENT),
    )
    for part in (limits, *([] if per_caller is None else [per_caller])):
        part.refuse_unknown()
    return found


def limits_json(limits: Limits) -> dict[str, Any]:
    """Return limits as the file has them."""
    rates = {_RATE: limits.caller_requests_per_second, _ROWS: limits.caller_rows_per_minute}
    per_caller = _said({**rates, _CONCURRENT: limits.caller_concurrent_requests})
    whole = {_RATE: limits.requests_per_second, _ROWS: limits.rows_per_minute, _BYTES: limits.request_bytes}
    return _said({**whole, _PER_CALLER: per_caller or None})


def stored_limits(value: Any) -> Limits:
    """Return the limits that `limits_json` wrote; None, of a service of before there were any, is without limits."""
    value = value or {}
    per_caller = value.get(_PER_CALLER, {})
    return Limits(
        requests_per_second=value.get(_RATE),
        caller_requests_per_second=per_caller.get(_RATE),
        request_bytes=value.get(_BYTES),
        rows_per_minute=value.get(_ROWS),
        caller_rows_per_minute=per_caller.get(_ROWS),
        caller_concurrent_requests=per_caller.get(_CONCURRENT),
    )


def _said(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _rate(document: Document) -> int | None:
    return _number(document, _RATE, MOST_PER_SECOND)


def _rows(document: Document) -> int | None:
    return _number(document, _ROWS, MOST_ROWS_PER_MINUTE)


def _number(document: Document, name: str, most: int) -> int | None:
    return None if document.raw(name, None) is None else document.integer(name, minimum=1, maximum=most)
