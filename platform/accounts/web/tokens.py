"""API token page: the caller's own tokens; for administrators of the installation, all.

Administrators create tokens for any user. Users who signed in at the provider create them for themselves, up to what
their roles allow; a session of a token cannot create any, since they would outlive it.
"""

from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from accounts.auth.access import Place, is_administrator, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, User
from accounts.selectors import proof_refusal, token_get, token_list
from accounts.services import CreatedToken, token_create, token_revoke, user_for_token
from common import durations
from common.errors import InvalidInput
from common.http.error_pages import is_fragment, leave, newest


@dataclass(frozen=True, slots=True)
class Row:
    """A token and whether it is valid now; `unconfirmed` until its user signs in at the provider again."""

    token: ApiToken
    state: str

    @classmethod
    def of(cls, token: ApiToken, now: datetime) -> "Row":
        """Return the row of a token at `now`."""
        if token.is_live(now):
            return cls(token, "unconfirmed" if proof_refusal(token=token, now=now) else "live")
        return cls(token, "revoked" if token.revoked_at is not None else "expired")


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@page_scope(Scope.READ)
def token_list_page(request: HttpRequest) -> HttpResponse:
    """Show the tokens; on POST create one and show its secret, this once."""
    made = _create(request) if request.method == "POST" else None
    token, now = page_token(request), timezone.now()
    rows, older = newest(request, token_list(user=_whose(token)))
    context = {
        "rows": [Row.of(row, now) for row in rows],
        "older": older,
        "made": made,
        "may_make_for_all": is_administrator(token),
        "may_revoke": token.allows(Scope.WRITE),
        "scopes": [scope.value for scope in _scopes(token)],
        "lifetime": durations.render(settings.TOKEN_LIFETIME),
    }
    in_place = made is not None and is_fragment(request)
    return render(request, "accounts/_token_answer.html" if in_place else "accounts/token_list.html", context)


@require_POST
@page_scope(Scope.WRITE)
def token_revoke_action(request: HttpRequest, token_id: int) -> HttpResponse:
    """Revoke a token, and with it the sessions that signed in with it."""
    token = token_get(token_id=token_id, user=_whose(page_token(request)))
    token_revoke(token=token, now=timezone.now(), actor=page_actor(request))
    messages.success(request, f"Token {token.name} is revoked.")
    return leave(request, "accounts:token-list")


def _create(request: HttpRequest) -> CreatedToken:
    caller, actor, now = page_token(request), page_actor(request), timezone.now()
    scope, username = request.POST.get("scope", ""), request.POST.get("user", "").strip()
    if username or not caller.is_session:
        require(caller, Scope.ADMIN, Place.installation())
    allowed = _scopes(caller)
    if scope not in allowed:
        raise InvalidInput(f"scope is {scope[:40]!r}; expected one of {', '.join(allowed)}", field="scope")
    said = request.POST.get("expires_in", "").strip()
    lifetime = durations.parse(said, field="expires_in") if said else settings.TOKEN_LIFETIME
    if lifetime > settings.TOKEN_LIFETIME and not is_administrator(caller):
        longest = durations.render(settings.TOKEN_LIFETIME)
        raise InvalidInput(f"expires_in is {said[:40]}; expected {longest} at most", field="expires_in")
    asked = Scope(scope)
    return token_create(
        user=user_for_token(username=username, scope=asked, actor=actor, now=now) if username else caller.user,
        name=request.POST.get("name", "").strip(),
        scope=asked,
        lifetime=lifetime,
        now=now,
        actor=actor,
        maker=caller.approver,
    )


def _scopes(token: ApiToken) -> tuple[Scope, ...]:
    """Return the scopes of tokens that the caller may create; empty for a caller who may create none."""
    if is_administrator(token):
        return tuple(Scope)
    if not token.is_session:
        return ()
    return tuple(scope for scope in Scope if any(role.scope.includes(scope) for role in token.roles.values()))


def _whose(token: ApiToken) -> User | None:
    return None if is_administrator(token) else token.user
