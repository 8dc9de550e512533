"""The sign-in page: a browser's session stands for one API token and carries its scope."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.services import session_signin, session_signout
from common.errors import NotAuthenticated, status_of


@never_cache
@sensitive_post_parameters("token")
@require_http_methods(["GET", "HEAD", "POST"])
def signin(request: HttpRequest) -> HttpResponse:
    """Show the form; on POST open a session for the token and go where the caller wanted."""
    if request.method != "POST":
        return render(request, "accounts/signin.html", {"next": request.GET.get("next", "")})
    try:
        session_signin(request=request, secret=request.POST.get("token", ""), now=timezone.now())
    except NotAuthenticated as error:
        context = {"next": request.POST.get("next", ""), "error": error.message}
        return render(request, "accounts/signin.html", context, status=status_of(error))
    return redirect(_destination(request))


@require_POST
def signout(request: HttpRequest) -> HttpResponse:
    """End the session."""
    session_signout(request=request, now=timezone.now())
    return redirect("accounts:signin")


def _destination(request: HttpRequest) -> str:
    """Return the page asked for before sign-in, if it is one of ours."""
    wanted = request.POST.get("next", "")
    ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if wanted and ours else resolve_url(settings.LOGIN_REDIRECT_URL)
