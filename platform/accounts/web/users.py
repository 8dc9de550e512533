"""User pages: list of users, roles and tokens of each, activation and deactivation."""

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from accounts.selectors import audit_list
from accounts.selectors.audit import FILTERS
from accounts.selectors.users import user_get, user_query, user_tokens
from accounts.services.identities import identity_forget
from accounts.services.invitations import CreatedInvitation, invitation_create, invitation_url
from accounts.services.oidc_users import MOST_REASON, user_switch_by
from accounts.web.audit import Row as AuditRow
from accounts.web.tokens import Row as TokenRow
from common.http.error_pages import is_fragment, leave, newest

_TOKENS_SHOWN, _ENTRIES_SHOWN = 20, 10


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def user_list_page(request: HttpRequest) -> HttpResponse:
    """Show the users, newest first, filtered by a part of the name."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    name = request.GET.get("name", "").strip()[:150]
    users = user_query()
    rows, older = newest(request, users.filter(username__icontains=name) if name else users)
    return render(request, "accounts/user_list.html", {"users": rows, "older": older, "name": name})


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def user_detail_page(request: HttpRequest, user: str) -> HttpResponse:
    """Show a user's teams and tokens, and recent audit entries by and about the user."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    return _detail(request, user)


def _detail(request: HttpRequest, user: str, invited: CreatedInvitation | None = None) -> HttpResponse:
    token, found, now = page_token(request), user_get(username=user), timezone.now()
    by_name = {one.name: one for one in FILTERS}
    about = by_name["user"].condition(user) | by_name["under"].condition(f"users/{user}")
    is_linked = hasattr(found, "identity") and found.identity.issuer == settings.OIDC_ISSUER
    context = {
        "user": found,
        "is_self": found.pk == token.user_id,
        "tokens": [TokenRow.of(row, now) for row in user_tokens(user=found).order_by("-pk")[:_TOKENS_SHOWN]],
        "entries": [AuditRow.of(entry) for entry in audit_list().filter(about)[:_ENTRIES_SHOWN]],
        "most_reason": MOST_REASON,
        "may_invite": bool(settings.OIDC_ISSUER) and found.is_active and not is_linked,
        **({} if invited is None else _shown(invited)),
    }
    return render(request, "accounts/user_detail.html", context)


def _shown(invited: CreatedInvitation) -> dict[str, object]:
    return {"invitation": invited.invitation, "invitation_url": invitation_url(invited)}


@require_POST
@page_scope(Scope.ADMIN)
def user_switch_action(request: HttpRequest, user: str) -> HttpResponse:
    """Activate or deactivate a user."""
    token = page_token(request)
    require(token, Scope.ADMIN, Place.installation())
    is_active = request.POST.get("state") == "on"
    reason = request.POST.get("reason", "")
    user_switch_by(caller=token, username=user, is_active=is_active, reason=reason, now=timezone.now())
    messages.success(request, f"{user} is {'let in again' if is_active else 'switched off'}.")
    return leave(request, "accounts:user-detail", user)


@never_cache
@require_POST
@page_scope(Scope.ADMIN)
def user_invite_action(request: HttpRequest, user: str) -> HttpResponse:
    """Create an invitation of the user and show its link, this once."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    invited = invitation_create(username=user, actor=page_actor(request), now=timezone.now())
    if is_fragment(request):
        return render(request, "accounts/_invitation_made.html", _shown(invited))
    return _detail(request, user, invited)


@require_POST
@page_scope(Scope.ADMIN)
def user_free_action(request: HttpRequest, user: str) -> HttpResponse:
    """Unlink the user from its account at the provider."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    identity_forget(username=user, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"{user} is unlinked from its account at the provider.")
    return leave(request, "accounts:user-detail", user)
