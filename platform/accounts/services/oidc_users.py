"""OpenID Connect users: account linking, roles from groups, and sessions."""

import logging
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from accounts.domain.group_roles import roles_of
from accounts.domain.person import Person
from accounts.domain.roles import Role
from accounts.domain.scopes import Scope
from accounts.models import ApiToken, Identity, Membership, Team, User
from accounts.selectors import TOKEN_PREFIX, digest_of
from accounts.services import actor_name, audit_record, session_open, user_create
from accounts.services.identities import identity_confirm, identity_link
from accounts.services.invitations import invitation_use
from accounts.services.teams import member_delete, member_set, team_create
from common.errors import Conflict, InvalidInput, NotAuthenticated, NotFound
from common.randomness import new_secret

logger = logging.getLogger(__name__)
SESSION_NAME = "browser"
MOST_REASON = 300
_KEPT_AFTER_END = timedelta(days=1)


def person_signin(
    *, request: HttpRequest, person: Person, now: datetime, invitation: str = "", refresh_token: str = ""
) -> ApiToken:
    """Sign the browser in as the identity's user, created at the first sign-in, and return its session's token.

    Args:
        invitation: digest of an invitation, whose user the identity is linked to; empty for none.
        refresh_token: what the provider can be asked with whether the account is still there; empty for none.

    Raises:
        NotAuthenticated: the user is deactivated, a new user's name is taken, or the invitation does not link the two.
    """
    with transaction.atomic():
        user = invitation_use(digest=invitation, person=person, now=now) if invitation else _user_of(person, now)
        if not user.is_active:
            raise NotAuthenticated(f"user {user.username!r} is switched off here; ask an administrator")
        identity_confirm(user=user, refresh_token=refresh_token, now=now)
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
            needs_proof=True,
            made_by=user.username,
        )
        session_open(request=request, token=token, now=now, detail={"issuer": person.issuer})
    return token


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
    """Return the account's user, created at its first sign-in; no existing user is taken by a name or an address."""
    known = Identity.objects.select_related("user").filter(issuer=person.issuer, subject=person.subject).first()
    if known is not None:
        return known.user
    if person.refusal:
        raise NotAuthenticated(person.refusal)
    role = None if settings.OIDC_DEFAULT_ROLE == "none" else Role(settings.OIDC_DEFAULT_ROLE)
    try:
        user = user_create(username=person.username, default_role=role, now=now)
    except Conflict as error:
        raise NotAuthenticated(
            f"the name {person.username!r} is taken here by another user; if that is you, an administrator can invite "
            f"you to link it to your account at the provider (`fairlead users invite {person.username}`)"
        ) from error
    except InvalidInput as error:
        raise NotAuthenticated(f"the provider gives a name that cannot be used here: {error.message}") from error
    identity_link(user=user, person=person, now=now)
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
