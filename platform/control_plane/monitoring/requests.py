"""Spans and log lines of web requests: a span for each where a collector is set, a line for each where lines are JSON.

Neither has query strings or bodies, which may hold secrets. Probes, metrics and static files have none.
"""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, cast

from asgiref.sync import iscoroutinefunction
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from common.http import request_id
from integrations.otlp import tracing
from serving_runtime.shared import json_log

logger = logging.getLogger(__name__)

_LEFT_OUT = ("/healthz", "/readyz", "/metrics", settings.STATIC_URL)
_LONGEST_PATH = 200


@sync_and_async_middleware
def RequestMiddleware(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:  # noqa: N802
    """Record each request; of a stream, until its response begins."""
    if iscoroutinefunction(get_response):
        answer = cast(Callable[[HttpRequest], Awaitable[HttpResponseBase]], get_response)

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            if _is_left_out(request):
                return await answer(request)
            began = time.monotonic()
            with _span(request) as span:
                response = await answer(request)
                _note(request, response, span, began)
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        if _is_left_out(request):
            response: HttpResponseBase = get_response(request)
            return response
        began = time.monotonic()
        with _span(request) as span:
            response = get_response(request)
            _note(request, response, span, began)
        return response

    return synchronous


def _is_left_out(request: HttpRequest) -> bool:
    wants = tracing.of_process.is_on or settings.LOG_FORMAT == json_log.JSON
    return not wants or request.path.startswith(_LEFT_OUT)


def _span(request: HttpRequest) -> Any:
    headers = request.headers
    caller = {name: value for name in ("traceparent", "tracestate") if (value := headers.get(name))}
    attributes = {
        "http.request.method": str(request.method),
        "url.path": request.path[:_LONGEST_PATH],
        "fairlead.request_id": request_id.current(),
    }
    return tracing.of_process.span(str(request.method), tracing.SERVER, attributes, caller=caller)


def _note(request: HttpRequest, response: HttpResponseBase, span: tracing.Span, began: float) -> None:
    status = response.status_code
    if (match := request.resolver_match) is not None:
        span.rename(f"{request.method} /{match.route}")
        span.set("http.route", f"/{match.route}")
    span.set("http.response.status_code", status)
    if status >= 500:
        span.fail(f"status {status}")
    if settings.LOG_FORMAT == json_log.JSON:
        call = f"{request.method} {request.path[:_LONGEST_PATH]}"
        took_us = int((time.monotonic() - began) * 1e6)
        logger.info("%s %s", call, status, extra={"call": call, "status": status, "took_us": took_us})
