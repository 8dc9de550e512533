"""Page of access keys: those of the caller's teams, with forms to create, limit, rotate and revoke them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from access.models import AccessKey
from access.selectors import key_get, key_query
from access.services.keys import (
    DEFAULT_LIFETIME,
    DEFAULT_OVERLAP,
    IssuedKey,
    key_create,
    key_limit,
    key_revoke,
    key_rotate,
)
from accounts.auth.access import Place, administered, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from accounts.selectors.users import user_get
from accounts.services.teams import team_get, team_query
from common import durations
from common.http.error_pages import is_fragment, leave, newest
from common.http.form_fields import whole_number
from integrations.clusters.base import MOST_PER_SECOND, MOST_ROWS_PER_MINUTE


@dataclass(frozen=True, slots=True)
class Row:
    """A key on the page.

    Attributes:
        state: `valid`, `expired` or `revoked`.
        since: when the state began; for a valid key, when its newest token expires.
        overlap_until: until when the token before its newest stays valid too; None where it has one.
    """

    key: AccessKey
    state: str
    since: datetime
    overlap_until: datetime | None
    may_manage: bool

    @classmethod
    def of(cls, key: AccessKey, now: datetime, *, may_manage: bool) -> "Row":
        """Return the row of a key at `now`."""
        tokens = sorted(key.tokens.all(), key=lambda token: token.pk, reverse=True)
        expires_at = tokens[0].expires_at
        if key.revoked_at is not None:
            return cls(key, "revoked", key.revoked_at, None, may_manage=False)
        if expires_at <= now:
            return cls(key, "expired", expires_at, None, may_manage)
        ends = [min(token.expires_at, token.revoked_at or token.expires_at) for token in tokens[1:]]
        overlap_until = max((end for end in ends if end > now), default=None)
        return cls(key, "valid", expires_at, overlap_until, may_manage)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@page_scope(Scope.READ)
def key_list_page(request: HttpRequest) -> HttpResponse:
    """Show the keys; on POST create one and show its token, this once."""
    return _page(request, _create(request) if request.method == "POST" else None)


@never_cache
@require_POST
@page_scope(Scope.ADMIN)
def key_rotate_action(request: HttpRequest, name: str) -> HttpResponse:
    """Give the key a new token and show it, this once."""
    _require_admin_of(request, name)
    said = request.POST.get("overlap", "").strip()
    overlap = durations.parse(said, field="overlap") if said else DEFAULT_OVERLAP
    return _page(request, key_rotate(name=name, overlap=overlap, actor=page_actor(request), now=timezone.now()))


@require_POST
@page_scope(Scope.ADMIN)
def key_limit_action(request: HttpRequest, name: str) -> HttpResponse:
    """Limit the requests of a key; an empty field is no limit."""
    _require_admin_of(request, name)
    limits = {
        "requests_per_second": whole_number(request, "requests_per_second", least=1, most=MOST_PER_SECOND),
        "rows_per_minute": whole_number(request, "rows_per_minute", least=1, most=MOST_ROWS_PER_MINUTE),
    }
    key_limit(name=name, limits=limits, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"The limits of key {name} are set; gateways apply them within 5 s.")
    return leave(request, "access:key-list")


@require_POST
@page_scope(Scope.ADMIN)
def key_revoke_action(request: HttpRequest, name: str) -> HttpResponse:
    """Revoke a key and all its tokens."""
    _require_admin_of(request, name)
    key_revoke(name=name, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"Key {name} is revoked; gateways refuse it within 5 s.")
    return leave(request, "access:key-list")


def _page(request: HttpRequest, issued: IssuedKey | None) -> HttpResponse:
    token, now = page_token(request), timezone.now()
    keys, older = newest(request, key_query(token=token))
    teams = _teams(token)
    context = {
        "rows": [Row.of(key, now, may_manage=key.team.name in teams) for key in keys],
        "older": older,
        "issued": issued,
        "teams": teams,
        "lifetime": durations.render(DEFAULT_LIFETIME),
        "overlap": durations.render(DEFAULT_OVERLAP),
    }
    in_place = issued is not None and is_fragment(request)
    return render(request, "access/_key_answer.html" if in_place else "access/key_list.html", context)


def _create(request: HttpRequest) -> IssuedKey:
    team, username = request.POST.get("team", ""), request.POST.get("user", "").strip()
    require(page_token(request), Scope.ADMIN, Place.team(team))
    said = request.POST.get("expires_in", "").strip()
    return key_create(
        name=request.POST.get("name", "").strip(),
        team=team_get(name=team),
        user=user_get(username=username) if username else None,
        services=request.POST.get("services", "").split(),
        lifetime=durations.parse(said, field="expires_in") if said else DEFAULT_LIFETIME,
        actor=page_actor(request),
        now=timezone.now(),
    )


def _require_admin_of(request: HttpRequest, name: str) -> None:
    require(page_token(request), Scope.ADMIN, Place.team(key_get(name=name).team.name))


def _teams(token: ApiToken) -> Sequence[str]:
    """Return the names of the teams whose keys the caller may change."""
    if not token.allows(Scope.ADMIN):
        return ()
    names = administered(token)
    return sorted(team_query(token=token).values_list("name", flat=True) if names is None else names)
