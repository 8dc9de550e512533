"""OpenID Connect users: account linking, roles from groups, and sessions."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from accounts.domain.group_roles import roles_of
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, Identity, Membership, Team, User
from accounts.selectors import TOKEN_PREFIX, digest_of
from accounts.services import actor_name, audit_record, session_open, user_get_or_create
from accounts.services.teams import member_delete, member_set, team_create
from common.errors import Conflict, InvalidInput, NotAuthenticated, NotFound
from common.randomness import new_secret

logger = logging.getLogger(__name__)
SESSION_NAME = "browser"
MOST_REASON = 300
_KEPT_AFTER_END = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Person:
    """A user's identity at a provider.

    Attributes:
        subject: the provider's own name of the account, which it never reassigns.
        groups: None where groups are not used here.
    """

    issuer: str
    subject: str
    username: str
    groups: frozenset[str] | None


def person_of(claims: Mapping[str, Any], *, issuer: str, username_claim: str, groups_claim: str) -> Person:
    """Return the identity in checked claims; raises NotAuthenticated where they give no usable name."""
    username = claims.get(username_claim)
    if not isinstance(username, str) or not username.strip():
        raise NotAuthenticated(
            f"the provider did not say {username_claim!r}, which is the user's name here; an administrator can let it "
            "say that, or choose another claim by FAIRLEAD_OIDC_USERNAME_CLAIM"
        )
    if username_claim == "email" and claims.get("email_verified") is False:
        raise NotAuthenticated(f"the provider has not verified the address {username[:150]}; verify it there first")
    groups = _groups(claims.get(groups_claim)) if groups_claim else None
    return Person(issuer=issuer, subject=str(claims["sub"]), username=username.strip(), groups=groups)


def _groups(said: object) -> frozenset[str]:
    """Return the names in a claim, which providers write as a list or, for one, as text; empty for other types."""
    return frozenset(
        filter(None, map(str, [said] if isinstance(said, str) else said if isinstance(said, list) else []))
    )


def person_signin(*, request: HttpRequest, person: Person, now: datetime) -> ApiToken:
    """Sign the browser in as the identity's user, created at the first sign-in, and return its session's token.

    Raises:
        NotAuthenticated: the user is deactivated, or the name belongs to another account of the provider.
    """
    with transaction.atomic():
        user = _user_of(person, now)
        if not user.is_active:
            raise NotAuthenticated(f"user {user.username!r} is switched off here; ask an administrator")
        if person.groups is not None:
            _roles_follow(user, person.groups, now)
        token = ApiToken.objects.create(
            user=user,
            name=SESSION_NAME,
            digest=digest_of(TOKEN_PREFIX + new_secret()),
            hint="",
            scope=Scope.ADMIN,  # limited by the user's roles
            created_at=now,
            expires_at=now + settings.OIDC_SESSION,
            last_used_at=now,
            is_session=True,
            made_by=user.username,
        )
        session_open(request=request, token=token, now=now, detail={"issuer": person.issuer})
    return token


@transaction.atomic
def identity_forget(*, username: str, actor: str, now: datetime) -> None:
    """Unlink the user from the provider's account, so that another one of that name may sign in; raises NotFound."""
    before = Identity.objects.filter(user__username=username).first()
    if before is None:
        raise NotFound(f"there is no user {username[:150]!r} who signed in at a provider")
    before.delete()
    ApiToken.objects.filter(user__username=username, is_session=True, revoked_at=None).update(revoked_at=now)
    audit_record(
        actor=actor,
        action="user.free",
        target=f"users/{username}",
        now=now,
        before={"issuer": before.issuer, "subject": before.subject},
    )


def user_switch_by(*, caller: ApiToken, username: str, is_active: bool, reason: str, now: datetime) -> None:
    """Carry out an administrator's command, for a reason that the audit log keeps; raises NotFound.

    Raises:
        InvalidInput: the reason is missing, or too long.
        Conflict: the caller would deactivate himself; so one administrator stays.
    """
    reason = reason.strip()
    if not reason or len(reason) > MOST_REASON or not reason.isprintable():
        raise InvalidInput(
            f"the reason has {len(reason)} characters; the audit log takes 1 to {MOST_REASON} printable ones",
            field="reason",
        )
    if username == caller.user.username and not is_active:
        raise Conflict(f"you are {username}; another administrator can switch you off")
    user_switch(username=username, is_active=is_active, actor=actor_name(caller), now=now, reason=reason)


@transaction.atomic
def user_switch(*, username: str, is_active: bool, actor: str, now: datetime, reason: str = "") -> None:
    """Activate or deactivate the user: sessions and tokens are invalid while deactivated; raises NotFound."""
    user = User.objects.filter(username=username).first()
    if user is None:
        raise NotFound(f"there is no user {username[:150]!r}")
    if user.is_active == is_active:
        return
    User.objects.filter(pk=user.pk).update(is_active=is_active)
    audit_record(
        actor=actor,
        action="user.switch",
        target=f"users/{username}",
        now=now,
        before={"active": not is_active},
        after={"active": is_active},
        detail={"reason": reason} if reason else None,
    )


def sessions_forget(*, now: datetime) -> int:
    """Delete the tokens of provider sessions that ended a day ago, and return their number."""
    return ApiToken.objects.filter(is_session=True, expires_at__lte=now - _KEPT_AFTER_END).delete()[0]


def _user_of(person: Person, now: datetime) -> User:
    """Return the account's user; matched by its name at the first sign-in, and when the provider is replaced."""
    known = Identity.objects.select_related("user").filter(issuer=person.issuer, subject=person.subject).first()
    if known is not None:
        return known.user
    role = None if settings.OIDC_DEFAULT_ROLE == "none" else Role(settings.OIDC_DEFAULT_ROLE)
    user = user_get_or_create(username=person.username, default_role=role, now=now)
    before = Identity.objects.filter(user=user).first()
    if before is not None and before.issuer == person.issuer:
        raise NotAuthenticated(
            f"the name {person.username!r} belongs to another account of the provider; who runs Fairlead can free "
            f"it by `manage.py user_free {person.username}`"
        )
    Identity.objects.update_or_create(user=user, defaults={"issuer": person.issuer, "subject": person.subject})
    audit_record(
        actor="fairlead",
        action="user.identify",
        target=f"users/{user.username}",
        now=now,
        before=None if before is None else {"issuer": before.issuer, "subject": before.subject},
        after={"issuer": person.issuer, "subject": person.subject},
    )
    return user


def _roles_follow(user: User, groups: frozenset[str], now: datetime) -> None:
    """Give the user these groups' roles in the teams of the rules, and remove those that no group gives."""
    wanted = roles_of(groups, settings.OIDC_GROUP_ROLES)
    present = dict(Membership.objects.filter(user=user, team__name__in=wanted).values_list("team__name", "role"))
    there = set(Team.objects.filter(name__in=wanted).values_list("name", flat=True))
    for team, role in wanted.items():
        try:
            if role is not None:
                if team not in there:
                    team_create(name=team, actor="fairlead", now=now)
                member_set(team=team, username=user.username, role=role, actor="fairlead", now=now)
            elif team in present:
                member_delete(team=team, username=user.username, actor="fairlead", now=now)
        except Conflict as error:  # the last administrator, without whom the mistake could not be undone
            logger.warning("the groups of %s do not give the role %s any more: %s", user, present[team], error.message)
