"""Sign-in page: a browser's session is bound to one API token and has its scope."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render, resolve_url
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from accounts.auth import rate_limits
from accounts.services import session_signin, session_signout
from common.errors import FairleadError, NotAuthenticated, NotPermitted, status_of


@never_cache
@sensitive_post_parameters("token")
@require_http_methods(["GET", "HEAD", "POST"])
def signin(request: HttpRequest) -> HttpResponse:
    """Show the ways to sign in; on POST open a session for the token and redirect to the requested page."""
    if request.method != "POST":
        return signin_form(request, wanted=request.GET.get("next", ""))
    wanted = request.POST.get("next", "")
    if not settings.TOKEN_SIGNIN:
        raise NotPermitted("browsers do not sign in with a token here; sign in at the provider")
    rate_limits.check_signin(request)
    try:
        session_signin(request=request, secret=request.POST.get("token", ""), now=timezone.now())
    except NotAuthenticated as error:
        rate_limits.count_failed_signin(request)
        return signin_form(request, wanted=wanted, token_error=error)
    return redirect(destination(request, wanted))


@require_POST
def signout(request: HttpRequest) -> HttpResponse:
    """End the session."""
    token = session_signout(request=request, now=timezone.now())
    address = resolve_url("accounts:signin")
    return redirect(f"{address}?left=provider" if token is not None and token.is_session else address)


def signin_form(
    request: HttpRequest,
    *,
    wanted: str = "",
    token_error: FairleadError | None = None,
    provider_error: FairleadError | None = None,
) -> HttpResponse:
    """Return the page with the ways to sign in, and the error of the last attempt."""
    error = token_error or provider_error
    context = {
        "next": wanted,
        "error": token_error.message if token_error else "",
        "provider_error": provider_error.message if provider_error else "",
        "provider": settings.OIDC_LABEL if settings.OIDC_ISSUER else "",
        "has_tokens": settings.TOKEN_SIGNIN,
        "has_left": bool(settings.OIDC_ISSUER) and request.GET.get("left") == "provider",
    }
    return render(request, "accounts/signin.html", context, status=status_of(error) if error else 200)


def destination(request: HttpRequest, wanted: str) -> str:
    """Return the page requested before sign-in, if it is one of ours."""
    ours = url_has_allowed_host_and_scheme(wanted, {request.get_host()}, require_https=request.is_secure())
    return wanted if wanted and ours else resolve_url(settings.LOGIN_REDIRECT_URL)
