"""Request context (request id, W3C trace context) from HTTP headers or gRPC metadata; read only where it is used."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar

from serving_runtime.common.request import InferRequest, RequestContext

HEADERS = frozenset({b"x-request-id", b"traceparent", b"tracestate"})

_LONGEST = 512
"""Limit of one value, in characters; a longer one is no valid id or trace, and is ignored."""


CALL: ContextVar[RequestContext | None] = ContextVar("CALL", default=None)
"""Context of the gRPC call whose coroutine runs; None where it is not used."""


def from_headers(headers: Sequence[tuple[bytes, bytes]]) -> RequestContext:
    """Return the context in an HTTP request's headers, names as sent."""
    return from_metadata({name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers})


def from_metadata(metadata: Mapping[str, str]) -> RequestContext:
    """Return the context in a gRPC call's metadata, names in lower case."""
    found = [metadata.get(name, "") for name in ("x-request-id", "traceparent", "tracestate")]
    request_id, traceparent, tracestate = [value if len(value) <= _LONGEST else "" for value in found]
    return RequestContext(request_id, traceparent, tracestate)


def within(request: InferRequest, context: RequestContext | None) -> InferRequest:
    """Return the request with its context, unchanged without one."""
    return request if context is None else request._replace(context=context)


def numbered(context: RequestContext, number: int) -> RequestContext:
    """Return the context of one of several requests in one call, counted from 1."""
    request_id = f"{context.request_id}.{number}" if context.request_id else ""
    return context._replace(request_id=request_id)
