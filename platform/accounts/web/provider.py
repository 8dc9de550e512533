"""OpenID Connect sign-in: redirect to the provider, and callback.

Links, not forms: the Content-Security-Policy lets no form lead to another host, not even by a redirect.
"""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from accounts.auth import rate_limits
from accounts.services import session_refuse
from accounts.services.oidc_users import person_of, person_signin
from accounts.web.signin import destination, signin_form
from common.errors import FairleadError, NotAuthenticated
from integrations import oidc

_NEXT_KEY = "signin_next"
_TIME_TO_SIGN_IN_S = 3600


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider."""
    rate_limits.check_signin(request)
    provider, wanted = _provider(), request.GET.get("next", "")
    try:
        answer = oidc.begin(request, provider, back_to=_ours("accounts:provider-back"))
    except FairleadError as error:
        return signin_form(request, wanted=wanted, provider_error=error)
    request.session[_NEXT_KEY] = wanted
    if not request.user.is_authenticated:
        request.session.set_expiry(_TIME_TO_SIGN_IN_S)
    return answer


@never_cache
@require_GET
def back(request: HttpRequest) -> HttpResponse:
    """Open a session for a user returning from the provider, and redirect to the requested page."""
    rate_limits.check_signin(request)
    provider, now = _provider(), timezone.now()
    wanted = str(request.session.get(_NEXT_KEY, ""))
    names = {settings.OIDC_USERNAME_CLAIM, settings.OIDC_GROUPS_CLAIM} - {""}
    try:
        claims = oidc.finish(request, provider, wanted=frozenset(names))
        person = person_of(
            claims,
            issuer=provider.issuer,
            username_claim=settings.OIDC_USERNAME_CLAIM,
            groups_claim=settings.OIDC_GROUPS_CLAIM,
        )
        person_signin(request=request, person=person, now=now)
    except FairleadError as error:
        if isinstance(error, NotAuthenticated):
            rate_limits.count_failed_signin(request)
            session_refuse(request=request, reason=error.message, now=now)
        return signin_form(request, wanted=wanted, provider_error=error)
    request.session.pop(_NEXT_KEY, None)
    return redirect(destination(request, wanted))


@never_cache
@require_GET
def signout(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider's own sign-out, and from there back to the sign-in page."""
    try:
        address = oidc.signout_url(_provider(), back_to=_ours("accounts:signin"))
    except FairleadError as error:
        return signin_form(request, provider_error=error)
    return redirect(address or "accounts:signin")


def _provider() -> oidc.Provider:
    if not settings.OIDC_ISSUER:
        raise Http404("no provider is set up")
    return oidc.Provider(
        issuer=settings.OIDC_ISSUER,
        client_id=settings.OIDC_CLIENT_ID,
        client_secret=settings.OIDC_CLIENT_SECRET,
        scopes=tuple(settings.OIDC_SCOPES),
    )


def _ours(view: str) -> str:
    """Return the whole URL of a page, under the name that the provider knows, regardless of proxies in between."""
    return f"{settings.PUBLIC_URL}{reverse(view)}"
