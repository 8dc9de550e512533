"""Queries of users and tokens. Read-only."""

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db.models import F, Q, QuerySet
from django.http import HttpRequest

from accounts.domain.proof import has_lapsed
from accounts.domain.roles import DEFAULT_TEAM, Owned, Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, AuditEntry, Membership, Ownership, Team, User
from common.errors import NotAuthenticated, NotFound
from common.identifiers import token_prefix

SESSION_KEY = "api_token_id"
TOKEN_PREFIX = "flt_"  # noqa: S105 - what secret scanners look for, not a secret


def digest_of(secret: str) -> str:
    """Return the stored form of a token's secret."""
    return hashlib.sha256(secret.encode()).hexdigest()


def token_of(*, secret: str, now: datetime) -> ApiToken:
    """Return the live token with this secret, with its user.

    Raises:
        NotAuthenticated: unknown, expired, revoked, or its user is deactivated, or no longer confirmed by the provider;
            the sentence says which.
    """
    token = ApiToken.objects.select_related("user__identity").filter(digest=digest_of(secret)).first()
    if token is None:
        raise NotAuthenticated(
            "this token is not known here; ask an administrator for one, or make one with `fairlead tokens create` "
            "where Fairlead runs"
        )
    if token.revoked_at is not None:
        raise NotAuthenticated(f"token {token.name!r} was revoked at {token.revoked_at:%Y-%m-%d %H:%M} UTC")
    if not token.is_live(now):
        raise NotAuthenticated(f"token {token.name!r} expired at {token.expires_at:%Y-%m-%d %H:%M} UTC; make a new one")
    if not token.user.is_active:
        raise NotAuthenticated(
            f"user {token.user.username!r} of token {token.name!r} is switched off; ask an administrator"
        )
    unconfirmed = proof_refusal(token=token, now=now)
    if unconfirmed:
        raise NotAuthenticated(unconfirmed)
    return token


def proof_refusal(*, token: ApiToken, now: datetime) -> str:
    """Return why the provider's word on the token's user does not let it work; empty where it does, or is not needed.

    No query where the token was selected with `user__identity`.
    """
    user = token.user
    if not hasattr(user, "identity"):
        return ""
    identity = user.identity
    again = f"user {user.username!r} has to sign in there again"
    if identity.ended_at is not None:
        return f"{identity.issuer} no longer has the account of token {token.name!r}; {again}"
    is_stale = token.needs_proof and has_lapsed(
        checked_at=identity.checked_at,
        can_be_asked=bool(identity.sealed_refresh_token) and identity.issuer == settings.OIDC_ISSUER,
        longest_outage=settings.OIDC_LONGEST_OUTAGE,
        now=now,
    )
    if is_stale and identity.checked_at is not None:
        return (
            f"{identity.issuer} last confirmed the account of token {token.name!r} at "
            f"{identity.checked_at:%Y-%m-%d %H:%M} UTC, more than a day ago; {again}"
        )
    return ""


def token_of_session(*, request: HttpRequest, now: datetime) -> ApiToken | None:
    """Return the live token the session was signed in with, or None; revoking a token thus ends its sessions."""
    token_id = request.session.get(SESSION_KEY)
    if token_id is None:
        return None
    token = ApiToken.objects.select_related("user__identity").filter(pk=token_id).first()
    if token is None or not token.is_live(now) or not token.user.is_active:
        return None
    return None if proof_refusal(token=token, now=now) else token


def makers_of_tokens(actors: Iterable[str]) -> dict[str, set[str]]:
    """Return, by name of an actor, the users who made a token of that user and name for him; one query for all.

    Names of tokens are not unique, so an actor may have several makers. Actors without such a token are left out.
    """
    tokens: dict[tuple[str, str], str] = {}
    for actor in actors:
        for at in re.finditer(re.escape(token_prefix("")), actor):
            tokens[actor[: at.start()], actor[at.end() : -1]] = actor
    if not tokens:
        return {}
    named = ApiToken.objects.filter(
        user__username__in={user for user, _ in tokens}, name__in={name for _, name in tokens}
    )
    found: dict[str, set[str]] = {}
    for user, name, maker in (
        named.exclude(made_by="")
        .exclude(made_by=F("user__username"))
        .values_list("user__username", "name", "made_by")
        .distinct()
    ):
        if (user, name) in tokens:
            found.setdefault(tokens[user, name], set()).add(maker)
    return found


def token_list(*, user: User | None) -> QuerySet[ApiToken]:
    """Return the tokens of `user`, or all for None."""
    tokens = ApiToken.objects.select_related("user__identity")
    return tokens if user is None else tokens.filter(user=user)


def token_get(*, token_id: int, user: User | None) -> ApiToken:
    """Return one token out of `token_list`; raises NotFound."""
    token = token_list(user=user).filter(pk=token_id).first()
    if token is None:
        raise NotFound(f"there is no token {token_id} that you may see")
    return token


def audit_list(*, target: str | None = None) -> QuerySet[AuditEntry]:
    """Return the audit log, newest first; only of `target` where given."""
    entries = AuditEntry.objects.order_by("-id")
    return entries if target is None else entries.filter(target=target)


def owning_team(*, kind: Owned, name: str) -> str:
    """Return the name of the team that owns a namespace or model."""
    owners = Ownership.objects.filter(kind=kind, name=name).values_list("team__name", flat=True)
    return owners.first() or DEFAULT_TEAM


def owning_teams(*, kind: Owned, names: Iterable[str]) -> dict[str, str]:
    """Return the name of the owning team for each of these namespaces or models; one query."""
    asked = set(names)
    owners = dict(Ownership.objects.filter(kind=kind, name__in=asked).values_list("name", "team__name"))
    return {name: owners.get(name, DEFAULT_TEAM) for name in asked}


def users_who_may(scope: Scope, *, kind: Owned, names: Iterable[str]) -> dict[str, set[int]]:
    """Return for each name the ids of the active users whose role there allows `scope`; two queries for all names."""
    teams = owning_teams(kind=kind, names=names)
    allowing = [role for role in Role if role.scope.includes(scope)]
    members = Membership.objects.filter(
        Q(team__name__in=set(teams.values()), role__in=allowing) | Q(team__name=DEFAULT_TEAM, role=Role.ADMIN),
        user__is_active=True,
        user__identity__ended_at=None,
    )
    rows = list(members.values_list("team__name", "role", "user_id"))
    administrators = {user for team, role, user in rows if (team, role) == (DEFAULT_TEAM, Role.ADMIN)}
    return {name: administrators | {user for found, _, user in rows if found == team} for name, team in teams.items()}


def team_rates() -> list[tuple[str, int]]:
    """Return the teams whose requests are limited, with how many a second, by name."""
    return _team_limits("requests_per_second")


def team_row_rates() -> list[tuple[str, int]]:
    """Return the teams the rows of whose requests are limited, with how many a minute, by name."""
    return _team_limits("rows_per_minute")


def _team_limits(column: str) -> list[tuple[str, int]]:
    return [(name, limit) for name, limit in Team.objects.order_by("name").values_list("name", column) if limit]
