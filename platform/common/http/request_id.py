"""Request ids: every request has one, in its log lines, its error response and its audit entries.

A caller may send one in `X-Request-ID`; an id that is not a short plain word is replaced, so that a client cannot forge
log lines. The id is in a context variable, which asgiref copies into the threads of sync views.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar, Token
from typing import Any, cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

from common.randomness import new_id

HEADER = "X-Request-ID"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_current: ContextVar[str] = ContextVar("fairlead_request_id", default="")


def current() -> str:
    """Return the current request's id; empty outside of a request."""
    return _current.get()


def begin(offered: str | None) -> Token[str]:
    """Attribute everything until `end` to a request; its id is checked as a caller's is."""
    return _current.set(choose(offered))


def end(token: Token[str]) -> None:
    """Restore the state before the `begin` that returned `token`."""
    _current.reset(token)


@contextmanager
def acting_for(request_id: str) -> Iterator[None]:
    """Attribute the block to an earlier request; to none where the id is empty."""
    token = _current.set(request_id)
    try:
        yield
    finally:
        _current.reset(token)


def choose(offered: str | None) -> str:
    """Return the caller's id if it is a plain word of at most 64 characters, else a new one."""
    return offered if offered and _ACCEPTED.fullmatch(offered) else new_id().hex


@sync_and_async_middleware
def RequestIdMiddleware(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:  # noqa: N802
    """Set the id for the time of the request and return it in the response."""
    if iscoroutinefunction(get_response):
        answer = cast(Callable[[HttpRequest], Awaitable[HttpResponseBase]], get_response)

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            request_id = choose(request.headers.get(HEADER))
            request.request_id = request_id  # type: ignore[attr-defined]
            token = _current.set(request_id)
            try:
                response = await answer(request)
            finally:
                _current.reset(token)
            response.headers[HEADER] = request_id
            return response

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        request_id = choose(request.headers.get(HEADER))
        request.request_id = request_id  # type: ignore[attr-defined]
        token = _current.set(request_id)
        try:
            response: HttpResponseBase = get_response(request)
        finally:
            _current.reset(token)
        response.headers[HEADER] = request_id
        return response

    return synchronous


class RequestIdFilter(logging.Filter):
    """Puts `request_id` on every record; `-` outside of a request."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Never drops a record."""
        if hasattr(record, "request_id"):
            return True  # an explicit id takes precedence
        # Django logs refused requests after the middleware, and passes the request.
        request = getattr(record, "request", None)
        record.request_id = current() or getattr(request, "request_id", "-")
        return True
