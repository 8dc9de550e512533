"""Invitation page: what the link of an invitation opens, and from which the invited user goes on to the provider.

Opening the link changes nothing, since programs that preview links do that too. Going on needs a number that only the
page has: a link of another site cannot lead a browser through the provider, and so to somebody else's user here.
"""

from secrets import compare_digest

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.selectors import digest_of
from accounts.services.invitations import invitation_get
from accounts.web.signin import signin_form
from common.errors import FairleadError, NotAuthenticated
from common.randomness import new_secret

_OFFERED, _ACCEPTED = "invitation_offered", "invitation_accepted"
TIME_TO_SIGN_IN_S = 3600


@never_cache
@require_safe
def invitation_page(request: HttpRequest, secret: str) -> HttpResponse:
    """Show which user the invitation is for, with the way to the provider."""
    if not settings.OIDC_ISSUER:
        raise Http404("no provider is set up")
    digest = digest_of(secret)
    try:
        invitation = invitation_get(digest=digest, now=timezone.now())
    except FairleadError as error:
        return signin_form(request, provider_error=error)
    number = new_secret()
    request.session[_OFFERED] = [digest, number]
    if not request.user.is_authenticated:
        request.session.set_expiry(TIME_TO_SIGN_IN_S)
    context = {"invitation": invitation, "number": number, "provider": settings.OIDC_LABEL}
    return render(request, "accounts/invitation.html", context)


def accept(request: HttpRequest) -> None:
    """Keep the invitation for the return from the provider if its page leads there; raises NotAuthenticated."""
    request.session.pop(_ACCEPTED, None)
    number = request.GET.get("invitation")
    if number is None:
        return
    digest, offered = request.session.get(_OFFERED, ("", ""))
    if not offered or not compare_digest(number.encode(), offered.encode()):
        raise NotAuthenticated("this sign-in with an invitation did not begin here; open the link of the invitation")
    request.session[_ACCEPTED] = digest


def accepted(request: HttpRequest) -> str:
    """Return the digest of the invitation that this sign-in began with; empty for none."""
    return str(request.session.get(_ACCEPTED, ""))


def forget(request: HttpRequest) -> None:
    """Remove the invitation from the browser's session."""
    for key in (_OFFERED, _ACCEPTED):
        request.session.pop(key, None)
