"""Error pages: renders an error of a page's view as a page, or as a fragment for htmx, with the right status.

The API has its own handler (`common.http.api_errors`); Django logs all other exceptions and renders `500.html`.
"""

import logging
from collections.abc import Sequence
from typing import TypeVar

from django.conf import settings
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils.deprecation import MiddlewareMixin

from common.errors import FairleadError, InvalidInput, NoRoom, TooManyRequests, status_of
from common.http import request_id
from common.http.full_disk import full_disk

logger = logging.getLogger(__name__)
Row = TypeVar("Row", bound=Model)

TITLES = {
    400: "That cannot be done as asked",
    401: "Sign in first",
    403: "You may not do this",
    404: "There is nothing here",
    409: "Not possible now",
    413: "Too large",
    429: "Too many requests",
    503: "Not available for the moment",
    507: "The disk is full",
}


def is_fragment(request: HttpRequest) -> bool:
    """Return whether htmx requests a part of a page."""
    return request.headers.get("HX-Request") == "true"


def leave(request: HttpRequest, to: str, *args: object) -> HttpResponse:
    """Redirect to a page after a form was processed; also for a form sent by htmx."""
    if is_fragment(request):
        return HttpResponse(status=204, headers={"HX-Redirect": resolve_url(to, *args)})
    return redirect(to, *args)


def newest(request: HttpRequest, rows: QuerySet[Row], limit: int = 50) -> tuple[list[Row], str]:
    """Return a page of rows, newest first, and the query of the page with older ones; empty at the end.

    A page begins below the `before` of the address, an id, so that new rows shift nothing.
    """
    before = request.GET.get("before", "")
    if before:
        if not (before.isascii() and before.isdecimal() and len(before) < 19):
            raise InvalidInput(f"before is {before[:40]!r}; expected a number that a page gave out", field="before")
        rows = rows.filter(pk__lt=int(before))
    found = list(rows.order_by("-pk")[: limit + 1])
    if len(found) <= limit:
        return found, ""
    query = request.GET.copy()
    query["before"] = str(found[limit - 1].pk)
    return found[:limit], f"?{query.urlencode()}"


def error_page(request: HttpRequest, *, status: int, message: str, further: Sequence[str] = ()) -> HttpResponse:
    """Return the whole page of an error, or for htmx one notice in the place of notices.

    Args:
        further: what else is wrong, one sentence each.
    """
    if is_fragment(request):
        response = render(request, "_error.html", {"message": message, "further": further}, status=status)
        response.headers["HX-Retarget"] = "#notices"
        response.headers["HX-Reswap"] = "innerHTML"
        return response
    title = TITLES.get(status, "Something went wrong")
    context = {"title": title, "message": message, "further": further, "status": status}
    context["request_id"] = request_id.current()
    return render(request, "error.html", context, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Return the page for requests that Django itself refuses, such as a form that is too large (`handler400`)."""
    if isinstance(exception, RequestDataTooBig):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        return error_page(request, status=413, message=f"What was sent is too large; a form has at most {most} bytes.")
    return error_page(request, status=400, message="The request is not one that can be read.")


class ErrorPageMiddleware(MiddlewareMixin):
    """Last in the list, so that it is the first to see a view's exception."""

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """Return the response for our own errors; None leaves all others to Django."""
        error = full_disk(error) or error
        if isinstance(error, FairleadError):
            status, message = status_of(error), error.message
        elif isinstance(error, PermissionDenied):
            status, message = 403, str(error) or "that is not permitted"
        else:
            return None
        if status >= 500 and not isinstance(error, NoRoom):
            logger.error("%s %s: %s", request.method, request.path, message, exc_info=error)
        further = error.further if isinstance(error, FairleadError) else ()
        response = error_page(request, status=status, message=_sentence(message), further=further)
        if isinstance(error, TooManyRequests):
            response.headers["Retry-After"] = str(error.retry_after_s)
        return response

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Make htmx reload the page where a redirect (to the sign-in page) would land inside of a fragment."""
        if is_fragment(request) and 300 <= response.status_code < 400:
            return HttpResponse(status=204, headers={"HX-Refresh": "true"})
        return response


def _sentence(message: str) -> str:
    return message[:1].upper() + message[1:] + ("" if message.endswith((".", "!", "?")) else ".")
