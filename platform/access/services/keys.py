"""Changes of keys: created, rotated with an overlap, revoked; and the end of what is kept of their tokens."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import OuterRef, Q, Subquery

from access.domain.patterns import parse_patterns
from access.domain.tokens import Claims
from access.models import AccessKey, KeyToken
from access.services.gateways import push_soon
from access.services.signing import sign
from accounts.models import Team, User
from accounts.services import audit_record
from common.durations import render
from common.errors import Conflict, InvalidInput, NotFound
from common.identifiers import check_dns_label
from common.randomness import new_id
from integrations.clusters.base import CONSOLE
from usage.services.retention import KEPT_FOR as USAGE_KEPT_FOR

DEFAULT_LIFETIME = timedelta(days=90)
LONGEST_LIFETIME = timedelta(days=3650)
DEFAULT_OVERLAP = timedelta(hours=24)
_LONGEST_OVERLAP = timedelta(days=30)
_CONSOLE_LIFETIME = timedelta(minutes=5)
_RESERVED = "fairlead-"


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key with a new token, which is shown once and not stored."""

    key: AccessKey
    token: str


@transaction.atomic
def key_create(
    *,
    name: str,
    team: Team,
    user: User | None,
    services: Sequence[str],
    lifetime: timedelta,
    actor: str,
    now: datetime,
    requests_per_second: int | None = None,
    rows_per_minute: int | None = None,
) -> IssuedKey:
    """Create a key of a team with its first token.

    Raises:
        InvalidInput: the name, a pattern or the lifetime is wrong.
        Conflict: the name is taken, be it of a revoked key.
    """
    check_dns_label(name, field="name")
    if name.startswith(_RESERVED):
        raise InvalidInput(f"name is {name!r}; names that begin with {_RESERVED} are the platform's", field="name")
    patterns = parse_patterns(services)
    _check(lifetime, "expires_in", LONGEST_LIFETIME)
    if user is not None and not user.memberships.filter(team=team).exists():
        raise Conflict(
            f"user {user.username!r} is no member of team {team.name!r}; a key of the team can be a member's only",
            field="user",
        )
    key, created = AccessKey.objects.get_or_create(
        name=name,
        defaults={
            "team": team,
            "user": user,
            "services": list(patterns),
            "lifetime_s": int(lifetime.total_seconds()),
            "requests_per_second": requests_per_second,
            "rows_per_minute": rows_per_minute,
            "created_at": now,
            "created_by": actor,
        },
    )
    if not created:
        was = "was revoked, and its name stays taken; " if key.revoked_at else "is there already; rotate it, or "
        raise Conflict(f"key {name!r} {was}choose another name", field="name")
    issued = IssuedKey(key, _issue(key, now))
    audit_record(actor=actor, action="key.create", target=target_of(key), now=now, after=_described(key))
    return issued


@transaction.atomic
def key_limit(*, name: str, limits: Mapping[str, int | None], actor: str, now: datetime) -> AccessKey:
    """Limit the requests of a key to all services together.

    Args:
        limits: of `requests_per_second` and `rows_per_minute` those to change; None ends a limit.

    Raises:
        NotFound: there is no such key.
        Conflict: it is revoked.
    """
    key = _locked(name)
    if key.revoked_at is not None:
        raise Conflict(f"key {name!r} is revoked; create another one")
    before = _described(key)
    for column, limit in limits.items():
        setattr(key, column, limit)
    if before != _described(key):
        key.save(update_fields=list(limits))
        audit_record(
            actor=actor, action="key.limit", target=target_of(key), now=now, before=before, after=_described(key)
        )
        push_soon()
    return key


@transaction.atomic
def key_rotate(*, name: str, overlap: timedelta, actor: str, now: datetime) -> IssuedKey:
    """Give the key a new token; those of before stay valid for `overlap`, and none longer.

    Raises:
        NotFound: there is no such key.
        Conflict: it is revoked.
        InvalidInput: the overlap is too long.
    """
    key = _locked(name)
    if key.revoked_at is not None:
        raise Conflict(f"key {name!r} is revoked; create another one")
    if overlap:
        _check(overlap, "overlap", _LONGEST_OVERLAP)
    until = now + overlap
    ends_later = Q(revoked_at=None, expires_at__gt=until) | Q(revoked_at__gt=until)
    key.tokens.filter(ends_later).update(revoked_at=until)
    issued = IssuedKey(key, _issue(key, now))
    detail = {"overlap_s": int(overlap.total_seconds())}
    audit_record(actor=actor, action="key.rotate", target=target_of(key), now=now, detail=detail)
    push_soon()
    return issued


@transaction.atomic
def key_revoke(*, name: str, actor: str, now: datetime) -> AccessKey:
    """Revoke a key and all its tokens; a second time changes nothing."""
    key = _locked(name)
    if key.revoked_at is None:
        key.revoked_at = now
        key.save(update_fields=["revoked_at"])
        key.tokens.exclude(revoked_at__lte=now).update(revoked_at=now)
        audit_record(actor=actor, action="key.revoke", target=target_of(key), now=now, before=_described(key))
        push_soon()
    return key


def tokens_forget(*, now: datetime) -> int:
    """Delete expired tokens once the usage by them is deleted, and return their number; a key's newest stays.

    Gateways refuse an expired token without its row, and the newest says when its key expired. Usage has the ids of
    tokens, by which `last_used_at` of a key is found.
    """
    newest = KeyToken.objects.filter(key=OuterRef("key")).order_by("-pk").values("pk")[:1]
    expired = KeyToken.objects.filter(expires_at__lt=now - USAGE_KEPT_FOR)
    return expired.exclude(pk=Subquery(newest)).delete()[0]


def console_token(service: str, now: datetime) -> str:
    """Return a token of a few minutes by which the console calls one service, `<namespace>/<name>`, for a viewer."""
    claims = Claims(CONSOLE, new_id().hex, "", "", (service,), now, now + _CONSOLE_LIFETIME)
    return sign(claims, now=now)


def target_of(key: AccessKey) -> str:
    """Return the key's name in the audit log."""
    return f"keys/{key.name}"


def _issue(key: AccessKey, now: datetime) -> str:
    expires_at = now + timedelta(seconds=key.lifetime_s)
    row = KeyToken.objects.create(key=key, token_id=new_id().hex, issued_at=now, expires_at=expires_at)
    user = "" if key.user is None else key.user.username
    claims = Claims(key.name, row.token_id, key.team.name, user, tuple(key.services), now, expires_at)
    return sign(claims, now=now)


def _locked(name: str) -> AccessKey:
    key = AccessKey.objects.select_for_update(of=("self",)).select_related("team", "user").filter(name=name).first()
    if key is None:
        raise NotFound(f"there is no key {name[:80]!r} that you may see")
    return key


def _described(key: AccessKey) -> dict[str, object]:
    user = None if key.user is None else key.user.username
    return {
        "team": key.team.name,
        "user": user,
        "services": key.services,
        "lifetime_s": key.lifetime_s,
        "requests_per_second": key.requests_per_second,
        "rows_per_minute": key.rows_per_minute,
    }


def _check(length: timedelta, field: str, longest: timedelta) -> None:
    if not timedelta(0) < length <= longest:
        raise InvalidInput(f"{field} is {render(length)}; expected 1s to {render(longest)}", field=field)
