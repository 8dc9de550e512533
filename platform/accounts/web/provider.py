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
from accounts.domain.person import claims_wanted, person_of
from accounts.services import session_refuse
from accounts.services.oidc_users import person_signin
from accounts.web import invitations
from accounts.web.signin import destination, signin_form
from common.errors import FairleadError, NotAuthenticated
from integrations import oidc


@never_cache
@require_GET
def begin(request: HttpRequest) -> HttpResponse:
    """Redirect to the provider."""
    rate_limits.check_signin(request)
    wanted = request.GET.get("next", "")
    try:
        invitations.accept(request)
    except FairleadError as error:
        return signin_form(request, wanted=wanted, provider_error=error)
    return _lead_there(request, wanted)


def _lead_there(request: HttpRequest, wanted: str, *, is_offline: bool = True) -> HttpResponse:
    try:
        back_to = _ours("accounts:provider-back")
        answer = oidc.begin(request, _provider(), back_to=back_to, page=wanted, is_offline=is_offline)
    except FairleadError as error:
        return signin_form(request, wanted=wanted, provider_error=error)
    if not request.user.is_authenticated:
        request.session.set_expiry(invitations.TIME_TO_SIGN_IN_S)
    return answer


@never_cache
@require_GET
def back(request: HttpRequest) -> HttpResponse:
    """Open a session for a user returning from the provider, and redirect to the requested page."""
    rate_limits.check_signin(request)
    provider, now = _provider(), timezone.now()
    wanted = oidc.page_of(request)
    names = {"username_claim": settings.OIDC_USERNAME_CLAIM, "groups_claim": settings.OIDC_GROUPS_CLAIM}
    try:
        answer = oidc.finish(request, provider, wanted=claims_wanted(**names))
        person_signin(
            request=request,
            person=person_of(answer.claims, issuer=provider.issuer, **names),
            now=now,
            invitation=invitations.accepted(request),
            refresh_token=answer.refresh_token,
        )
    except oidc.ScopeRefused:
        return _lead_there(request, wanted, is_offline=False)  # people get in without a refresh token
    except FairleadError as error:
        if isinstance(error, NotAuthenticated):
            rate_limits.count_failed_signin(request)
            session_refuse(request=request, reason=error.message, now=now)
        return signin_form(request, wanted=wanted, provider_error=error)
    invitations.forget(request)
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
    provider = oidc.configured()
    if provider is None:
        raise Http404("no provider is set up")
    return provider


def _ours(view: str) -> str:
    """Return the whole URL of a page, under the name that the provider knows, regardless of proxies in between."""
    return f"{settings.PUBLIC_URL}{reverse(view)}"
