"""A strict Content-Security-Policy on every answer; everything a page needs comes from the control plane itself."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware
from asgiref.sync import iscoroutinefunction

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)


@sync_and_async_middleware
def ContentSecurityPolicyMiddleware(get_response: Callable[[HttpRequest], HttpResponseBase]) -> Callable:  # noqa: N802
    """Add the policy unless the view set one."""
    if iscoroutinefunction(get_response):

        async def middleware(request: HttpRequest) -> HttpResponseBase:
            response = await get_response(request)
            response.headers.setdefault("Content-Security-Policy", POLICY)
            return response

    else:

        def middleware(request: HttpRequest) -> HttpResponseBase:
            response = get_response(request)
            response.headers.setdefault("Content-Security-Policy", POLICY)
            return response

    return middleware
