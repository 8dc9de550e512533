"""Access log: one line per request, for `--log-verbose 1`; off, it is not in the request path.

    request_id=4d2f... model=digits call='POST /v2/models/digits/infer' status=200 took_us=812

The id is the `x-request-id` of a gateway or client; an id that is no plain word is left out, so that a client cannot
forge log lines. JSON lines have the values as fields too, and the trace of a W3C `traceparent`.
"""

import logging
import re
import time

logger = logging.getLogger(__name__)

HEADER, TRACEPARENT = "x-request-id", "traceparent"
_WORD = re.compile(r"[\w.~%:/+=-]{1,128}", re.ASCII)
_TRACE = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}")
_LONGEST_CALL = 200


def wanted() -> bool:
    """Return whether lines are written; the log settings may change while the server runs."""
    return logger.isEnabledFor(logging.DEBUG)


def note(request_id: str, model: str, call: str, status: str, began_ns: int, *, traceparent: str = "") -> None:
    """Write the line of a request that ends now.

    Args:
        request_id: as received; may be empty.
        model: the name in the request; empty where it names none.
        call: HTTP's method and target, or gRPC's method.
        status: HTTP's code or gRPC's name of one; `GONE` where the client disconnected first.
        began_ns: `time.perf_counter_ns()` when the whole request had arrived.
        traceparent: as received; may be empty.
    """
    fields: dict[str, str | int] = {
        "request_id": _word(request_id),
        "model": _word(model),
        "call": call[:_LONGEST_CALL],
        "status": status,
        "took_us": (time.perf_counter_ns() - began_ns) // 1000,
    }
    trace = {"trace_id": found[1]} if (found := _TRACE.match(traceparent)) else {}
    logger.debug("request_id=%s model=%s call=%r status=%s took_us=%d", *fields.values(), extra={**fields, **trace})


def _word(text: str) -> str:
    return text if _WORD.fullmatch(text) else "-"
