"""Changes of users, tokens and the audit log. Every change of the platform adds an entry by `audit_record`."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.contrib.auth import login, logout
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q
from django.http import HttpRequest

from accounts import hooks
from accounts.domain.approver import Approver, token_by
from accounts.domain.roles import DEFAULT_TEAM, Role
from accounts.domain.scopes import Scope
from accounts.models import AnsweredRequest, ApiToken, AuditEntry, Identity, Membership, Team, User
from accounts.selectors import SESSION_KEY, TOKEN_PREFIX, digest_of, token_of
from common.errors import Conflict, InvalidInput, NotAuthenticated
from common.http import request_id
from common.http.full_disk import full_disk
from common.identifiers import token_prefix
from common.randomness import new_secret

logger = logging.getLogger(__name__)
_USE_NOTED_EVERY = timedelta(minutes=1)
_MAX_NAME = 100
_MAX_USER_NAME = 150
_MAX_REFUSALS_A_MINUTE = 30
ANSWERS_KEPT_FOR = timedelta(hours=24)
_MAX_LIFETIME = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class CreatedToken:
    """A new token and its secret, which is shown once and not stored."""

    token: ApiToken
    secret: str


def audit_record(
    *,
    actor: str,
    action: str,
    target: str,
    now: datetime,
    before: Mapping[str, object] | None = None,
    after: Mapping[str, object] | None = None,
    detail: Mapping[str, object] | None = None,
) -> AuditEntry:
    """Add one entry to the audit log; call it in the transaction of the change.

    Args:
        actor: the caller's name from `actor_of`; `fairlead` for the platform's own actions.
        action: `<entity>.<verb>`, such as `model_version.register`.
        target: the object's path in the API without `/api/v1/`, such as `models/digits/versions/2`.
        before, after: the object's fields before and after the change; None where it did not exist.
        detail: related facts, such as the rollout that a service file started.
    """
    return AuditEntry.objects.create(
        at=now,
        actor=actor,
        action=action,
        target=target,
        before=None if before is None else dict(before),
        after=None if after is None else dict(after),
        detail=dict(detail or {}),
        request_id=request_id.current(),
    )


def team_default(*, now: datetime) -> Team:
    """Return the team that owns everything without another owner, created on first use."""
    return Team.objects.get_or_create(name=DEFAULT_TEAM, defaults={"created_at": now})[0]


@transaction.atomic
def user_get_or_create(
    *, username: str, default_role: Role | None = Role.ADMIN, actor: str = "fairlead", now: datetime
) -> User:
    """Return the user of that name, created without a password if missing.

    Args:
        default_role: a new user's role in the default team. As admin there, only the scopes of the user's tokens are a
            limit, until the role is changed. None gives no membership.

    Raises:
        InvalidInput: a new user's name is no name, or reads like a token.
    """
    known = User.objects.filter(username=username).first()
    if known is not None:
        return known
    _check_user_name(username)
    user, created = User.objects.get_or_create(username=username)
    if created:
        _make_local(user, default_role, actor, now)
    return user


@transaction.atomic
def user_create(*, username: str, default_role: Role | None, actor: str = "fairlead", now: datetime) -> User:
    """Return a new user; `default_role` as in `user_get_or_create`.

    Raises:
        InvalidInput: the name is no name, or reads like a token.
        Conflict: another user has it, in any case of its letters.
    """
    _check_user_name(username)
    try:
        if User.objects.filter(username__iexact=username).exists():
            raise Conflict(f"the name {username!r} is taken here")
        with transaction.atomic():
            user = User.objects.create(username=username)
    except IntegrityError as error:  # created at the same moment
        raise Conflict(f"the name {username!r} is taken here") from error
    _make_local(user, default_role, actor, now)
    return user


def _check_user_name(username: str) -> None:
    """Refuse what is no name, and what an audit log or a page would show like an API token or a caller with one."""
    if not username or len(username) > _MAX_USER_NAME or not username.isprintable():
        raise InvalidInput(
            f"user is {username[:40]!r}; expected a name of 1 to {_MAX_USER_NAME} printable characters", field="user"
        )
    if username.strip().lower().startswith(TOKEN_PREFIX):
        raise InvalidInput(
            f"user begins with {TOKEN_PREFIX}, as API tokens do; expected the name of a user, not a token", field="user"
        )
    if token_prefix("").strip() in username.lower():
        raise InvalidInput(
            f"user is {username[:40]!r}; a name has no {token_prefix('').strip()!r}, which the audit log writes of "
            "callers with tokens",
            field="user",
        )


def _make_local(user: User, default_role: Role | None, actor: str, now: datetime) -> None:
    """Give a user just created no password, the role, and an audit entry."""
    user.set_unusable_password()
    user.save(update_fields=["password"])
    if default_role is not None:
        Membership.objects.create(team=team_default(now=now), user=user, role=default_role)
    after = {"roles": {} if default_role is None else {DEFAULT_TEAM: default_role.value}}
    audit_record(actor=actor, action="user.create", target=f"users/{user.username}", now=now, after=after)


def user_for_token(*, username: str, scope: Scope, actor: str, now: datetime) -> User:
    """Return the user of that name for a token of `scope`; a new user has no wider role than the token needs."""
    return user_get_or_create(username=username, default_role=Role.needed_for(scope), actor=actor, now=now)


@transaction.atomic
def token_create(
    *,
    user: User,
    name: str,
    scope: Scope,
    lifetime: timedelta,
    now: datetime,
    actor: str,
    maker: Approver | None = None,
) -> CreatedToken:
    """Create a token for `user` with `scope` for `lifetime`.

    Args:
        maker: the caller, who is recorded as its maker; None for the server's command line.
    """
    if not 0 < len(name) <= _MAX_NAME or not name.isprintable():
        raise InvalidInput(f"name is {name[:40]!r}; expected 1 to {_MAX_NAME} printable characters", field="name")
    if not timedelta(0) < lifetime <= _MAX_LIFETIME:
        raise InvalidInput(
            f"a token lives from a second to {_MAX_LIFETIME.days} days, not {lifetime}", field="expires_in"
        )
    secret = TOKEN_PREFIX + new_secret()
    token = ApiToken.objects.create(
        user=user,
        name=name,
        digest=digest_of(secret),
        hint=secret[:8],
        scope=scope,
        created_at=now,
        expires_at=now + lifetime,
        needs_proof=Identity.objects.filter(user=user).exists(),
        made_by="" if maker is None else token_by(maker, user.username),
    )
    is_for_another = token.made_for_another
    audit_record(
        actor=actor,
        action="token.create",
        target=f"tokens/{token.pk}",
        now=now,
        after={
            "name": name,
            "scope": scope.value,
            "user": user.username,
            "expires_at": token.expires_at.isoformat(),
            "revoked_at": None,
        },
        detail={"made_for_another_by": token.made_by} if is_for_another else None,
    )
    if is_for_another:
        hooks.token_made_for_another(token, now)
    return CreatedToken(token, secret)


@transaction.atomic
def token_revoke(*, token: ApiToken, now: datetime, actor: str) -> None:
    """Revoke the token, and with it the sessions that signed in with it; idempotent."""
    if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
        audit_record(
            actor=actor,
            action="token.revoke",
            target=f"tokens/{token.pk}",
            now=now,
            before={"name": token.name, "revoked_at": None},
            after={"name": token.name, "revoked_at": now.isoformat()},
        )


def token_use(*, secret: str, now: datetime) -> ApiToken:
    """Return the live token of `secret` and record its use; raises NotAuthenticated."""
    token = token_of(secret=secret, now=now)
    # One write a minute, not one per request.
    if token.last_used_at is None or now - token.last_used_at >= _USE_NOTED_EVERY:
        stale = Q(last_used_at=None) | Q(last_used_at__lte=now - _USE_NOTED_EVERY)
        try:
            ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)
        except DatabaseError as error:
            if full_disk(error) is None:  # reads go on without
                raise
    return token


def session_signin(*, request: HttpRequest, secret: str, now: datetime) -> ApiToken:
    """Sign the browser in as the token's user, with the token's scope and at most its lifetime.

    Raises:
        NotAuthenticated: the secret is not valid; the sentence is fit for the sign-in page.
    """
    secret = secret.strip()
    try:
        if not secret.startswith(TOKEN_PREFIX):
            raise NotAuthenticated(f"that is no API token; one begins with {TOKEN_PREFIX}")
        token = token_use(secret=secret, now=now)
    except NotAuthenticated as error:
        known = ApiToken.objects.select_related("user").filter(digest=digest_of(secret)).first()
        session_refuse(request=request, reason=error.message, token=known, now=now)
        raise
    session_open(request=request, token=token, now=now)
    return token


def session_open(
    *, request: HttpRequest, token: ApiToken, now: datetime, detail: Mapping[str, object] | None = None
) -> None:
    """Bind the browser's session to `token`, for at most its lifetime."""
    login(request, token.user)
    request.session[SESSION_KEY] = token.pk
    request.session.set_expiry(max(1, int((token.expires_at - now).total_seconds())))
    where = {"address": _address_of(request), **(detail or {})}
    audit_record(actor=actor_name(token), action="session.signin", target=f"tokens/{token.pk}", now=now, detail=where)


def session_refuse(*, request: HttpRequest, reason: str, now: datetime, token: ApiToken | None = None) -> None:
    """Record a failed sign-in; rate-limited, since anyone can cause them and the log keeps them."""
    recent = AuditEntry.objects.filter(action="session.refuse", at__gt=now - timedelta(minutes=1))
    if recent.count() >= _MAX_REFUSALS_A_MINUTE:
        logger.warning("a sign-in from %s was refused: %s", _address_of(request), reason)
        return
    audit_record(
        actor="unknown" if token is None else actor_name(token),
        action="session.refuse",
        target="signin" if token is None else f"tokens/{token.pk}",
        now=now,
        detail={"reason": reason, "address": _address_of(request)},
    )


def _address_of(request: HttpRequest) -> str:
    return str(request.META.get("REMOTE_ADDR", ""))


def answers_forget(*, now: datetime) -> int:
    """Delete expired idempotent responses and return their number."""
    return AnsweredRequest.objects.filter(created_at__lte=now - ANSWERS_KEPT_FOR).delete()[0]


def session_signout(*, request: HttpRequest, now: datetime) -> ApiToken | None:
    """End the browser's session and return its token, which is revoked where it was made for this session alone."""
    token = ApiToken.objects.select_related("user").filter(pk=request.session.get(SESSION_KEY, 0)).first()
    logout(request)
    if token is not None:
        ApiToken.objects.filter(pk=token.pk, is_session=True, revoked_at=None).update(revoked_at=now)
        audit_record(actor=actor_name(token), action="session.signout", target=f"tokens/{token.pk}", now=now)
    return token


def actor_name(token: ApiToken) -> str:
    """Return the audit log's name of the caller with `token`."""
    return f"{token_prefix(token.user.username)}{token.name})"
