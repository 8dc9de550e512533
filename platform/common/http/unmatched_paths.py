"""Responses for unknown and for invalid paths."""

from collections.abc import Callable
from typing import Any, NoReturn, cast

from asgiref.sync import iscoroutinefunction
from django.http import HttpRequest, HttpResponseBase, JsonResponse
from django.utils.decorators import sync_and_async_middleware
from rest_framework.request import Request
from rest_framework.views import APIView

from common.errors import NotFound
from common.http.error_body import error_body


class NothingHereView(APIView):
    """Last of the API's addresses: answers in the API's shape, not with a page."""

    authentication_classes = ()
    permission_classes = ()
    schema = None

    def initial(self, request: Request, *_: Any, **__: Any) -> NoReturn:
        """Refuse, whatever the method."""
        raise NotFound(f"there is nothing at {request.path[:200]}; /api/v1/schema/ lists the API's addresses")


@sync_and_async_middleware
def NoZeroBytesMiddleware(get_response: Callable[[HttpRequest], Any]) -> Callable[[HttpRequest], Any]:  # noqa: N802
    """Refuse paths with a zero byte, which PostgreSQL stores in no text and no name here has."""
    if iscoroutinefunction(get_response):

        async def asynchronous(request: HttpRequest) -> HttpResponseBase:
            return _refusal(request) or cast(HttpResponseBase, await get_response(request))

        return asynchronous

    def synchronous(request: HttpRequest) -> HttpResponseBase:
        return _refusal(request) or cast(HttpResponseBase, get_response(request))

    return synchronous


def _refusal(request: HttpRequest) -> JsonResponse | None:
    if "\0" in request.path or "%00" in request.META.get("QUERY_STRING", ""):
        return JsonResponse(error_body("invalid_input", "the address has a zero byte; write it without"), status=400)
    return None
