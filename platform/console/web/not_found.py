"""Page for HTTP 404."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from accounts.selectors import token_of_session


def nowhere_page(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 -- Django gives it
    """Return 404, with links to all other pages for a signed-in viewer (`handler404`)."""
    request.token = token_of_session(request=request, now=timezone.now())  # type: ignore[attr-defined]
    return render(request, "404.html", status=404)
