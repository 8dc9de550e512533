"""Request limits: by token, by address for callers without one, and failed sign-ins by address.

Counted in Redis for all web processes where the broker is one (`integrations.shared_buckets`), else in the memory of
this process. An address is that of the connection, or what a proxy in `--forwarded-allow-ips` says; of IPv6 the first
64 bits.
"""

import time
from collections.abc import Mapping
from contextlib import suppress
from ipaddress import ip_address, ip_network
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.deprecation import MiddlewareMixin

from accounts.models import ApiToken
from common.errors import TooManyRequests
from common.http.error_body import error_body
from common.http.error_pages import error_page
from common.token_buckets import Buckets, TokenBuckets, Verdict


def _buckets() -> Buckets:
    if not settings.BROKER_URL.startswith("redis"):
        return TokenBuckets()
    from integrations.shared_buckets import SharedBuckets  # noqa: PLC0415 - its library comes with such brokers alone

    return SharedBuckets(settings.BROKER_URL, settings.SECRET_KEY)


BUCKETS = _buckets()
_UNCOUNTED = ("/healthz", "/readyz")
_PUBLIC = ("/metrics", "/signin/", "/api/v1/schema/")
"""Addresses whose views verify no credentials: sending some does not change what counts."""

_VERDICT = "rate_limit"


def count_token(request: HttpRequest, token: ApiToken) -> None:
    """Count a request of a verified token; raises TooManyRequests beyond its limit."""
    most = settings.TOKEN_REQUESTS_PER_MINUTE
    _take(request, ("token", token.pk), most, f"token {token.name!r} sends more than {most} requests a minute")


def count_address(request: HttpRequest) -> None:
    """Count a request without a token for its address; raises TooManyRequests beyond its limit."""
    most = settings.ANONYMOUS_REQUESTS_PER_MINUTE
    _take(request, ("address", address_of(request)), most, f"more than {most} requests a minute come without a token")


def check_signin(request: HttpRequest) -> None:
    """Raise TooManyRequests where the address has failed too often to sign in; counts nothing."""
    _take(request, *_of_failures(request), count=0)


def count_failed_signin(request: HttpRequest) -> None:
    """Count a sign-in or a token that was refused; raises TooManyRequests where the address had too many before."""
    _take(request, *_of_failures(request))


def count(key: tuple[str, ...], *, per_minute: int, burst: int) -> Verdict:
    """Count a request against a limit of the caller's own, in a bucket that holds `burst`."""
    return BUCKETS.take(key, per_minute=per_minute, now=time.monotonic(), burst=burst)


def refused_at_once(scope: Mapping[str, Any]) -> Verdict | None:
    """Return why an ASGI request to the API is refused before Django sees it; None to go on. Counts nothing.

    A refusal that passes through Django costs the server as much as a response.
    """
    path, most = scope["path"], settings.ANONYMOUS_REQUESTS_PER_MINUTE
    if not most or not scope.get("client") or not (path.startswith("/api/") or path in _PUBLIC):
        return None
    if path not in _PUBLIC and any(name in (b"authorization", b"cookie") for name, _ in scope["headers"]):
        return None
    key = ("address", _counted(scope["client"][0]))
    verdict = BUCKETS.look(key, per_minute=most, now=time.monotonic())
    return None if verdict.allowed else verdict


def anonymous_sentence(verdict: Verdict) -> str:
    """Return the sentence of a refusal of a request without a token."""
    most = settings.ANONYMOUS_REQUESTS_PER_MINUTE
    return f"more than {most} requests a minute come without a token; try again in {verdict.wait_s} s"


def address_of(request: HttpRequest) -> str:
    """Return the address whose requests count together."""
    return _counted(request.META.get("REMOTE_ADDR", ""))


def _counted(text: str) -> str:
    try:
        address = ip_address(text)
    except ValueError:
        return text
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        return str(mapped)
    return str(address) if address.version == 4 else str(ip_network((address, 64), strict=False))


class RateLimitMiddleware(MiddlewareMixin):
    """Counts requests without credentials before their view, adds the headers to responses.

    The last middleware, so that its refusals have the format of their address: JSON of the API, else a page.
    """

    def process_request(self, request: HttpRequest) -> HttpResponseBase | None:
        """Return 429 for a request without credentials beyond its address' limit."""
        if request.path in _UNCOUNTED or (_has_credentials(request) and request.path not in _PUBLIC):
            return None
        try:
            count_address(request)
        except TooManyRequests as error:
            return _with_headers(request, _refusal(request, error))
        return None

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Return `response` with what is left; counts one whose credentials no view verified, such as an old cookie."""
        if request.path in _UNCOUNTED:
            return response
        if _verdict(request) is None:
            with suppress(TooManyRequests):
                count_address(request)
        return _with_headers(request, response)


def _with_headers(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    verdict = _verdict(request)
    for name, value in (verdict.headers if verdict is not None else {}).items():
        response.headers.setdefault(name, value)
    return response


def _refusal(request: HttpRequest, error: TooManyRequests) -> HttpResponseBase:
    if request.path.startswith("/api/") or request.path == "/metrics":
        return JsonResponse(error_body(error.code, error.message), status=429)
    return error_page(request, status=429, message=error.message[:1].upper() + error.message[1:] + ".")


def _has_credentials(request: HttpRequest) -> bool:
    return "Authorization" in request.headers or settings.SESSION_COOKIE_NAME in request.COOKIES


def _of_failures(request: HttpRequest) -> tuple[tuple[str, str], int, str]:
    most = settings.SIGNIN_FAILURES_PER_MINUTE
    return ("signin", address_of(request)), most, f"more than {most} sign-ins or tokens a minute were refused"


def _take(request: HttpRequest, key: tuple[str, object], most: int, what: str, count: int = 1) -> None:
    if not most:
        return
    verdict = BUCKETS.take(key, per_minute=most, now=time.monotonic(), count=count)
    setattr(request, _VERDICT, verdict)
    if not verdict.allowed:
        raise TooManyRequests(f"{what}; try again in {verdict.wait_s} s", retry_after_s=verdict.wait_s)


def _verdict(request: HttpRequest) -> Verdict | None:
    found: Verdict | None = getattr(request, _VERDICT, None)
    return found
