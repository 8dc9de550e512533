"""Invitations: an administrator lets a user be linked to an account of the provider, by a link that works once.

Nothing else links an existing user to an account.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.urls import reverse

from accounts.domain.person import Person
from accounts.models import Identity, Invitation, User
from accounts.selectors import digest_of
from accounts.services import audit_record
from accounts.services.identities import identity_link
from common.errors import Conflict, NotAuthenticated, NotFound
from common.randomness import new_secret

LIFETIME = timedelta(hours=72)
_KEPT_AFTER_END = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class CreatedInvitation:
    """A new invitation and its secret, which is shown once and not stored."""

    invitation: Invitation
    secret: str


@transaction.atomic
def invitation_create(*, username: str, actor: str, now: datetime) -> CreatedInvitation:
    """Return an invitation of the user, for 72 hours; it replaces one that was not used.

    Raises:
        NotFound: there is no such user.
        Conflict: no provider is set up, or the user is deactivated or belongs to one of its accounts already.
    """
    if not settings.OIDC_ISSUER:
        raise Conflict("no provider is set up to sign in at; set FAIRLEAD_OIDC_ISSUER first")
    user = User.objects.select_related("identity").filter(username=username).first()
    if user is None:
        raise NotFound(f"there is no user {username[:150]!r}")
    if not user.is_active:
        raise Conflict(f"user {username!r} is switched off; switch the user on first")
    if hasattr(user, "identity") and user.identity.issuer == settings.OIDC_ISSUER:
        raise Conflict(
            f"user {username!r} signs in at {settings.OIDC_ISSUER} already; unlink that account first "
            f"(`fairlead users free {username}`)"
        )
    Invitation.objects.filter(user=user, used_at=None, expires_at__gt=now).update(expires_at=now)
    secret = new_secret()
    invitation = Invitation.objects.create(
        user=user, digest=digest_of(secret), created_by=actor, created_at=now, expires_at=now + LIFETIME
    )
    audit_record(
        actor=actor,
        action="user.invite",
        target=f"users/{username}",
        now=now,
        after={"expires_at": invitation.expires_at.isoformat()},
    )
    return CreatedInvitation(invitation, secret)


def invitation_url(created: CreatedInvitation) -> str:
    """Return the link for the user, under the name that browsers reach the control plane by."""
    return f"{settings.PUBLIC_URL}{reverse('accounts:invitation', args=[created.secret])}"


def invitation_get(*, digest: str, now: datetime) -> Invitation:
    """Return the invitation that can be used now; raises NotAuthenticated, with a sentence for who opened the link."""
    invitation = Invitation.objects.select_related("user").filter(digest=digest).first()
    if invitation is None:
        raise NotAuthenticated("this invitation is not known here; ask an administrator for a new one")
    if invitation.used_at is not None:
        raise NotAuthenticated(
            f"this invitation was used at {invitation.used_at:%Y-%m-%d %H:%M} UTC and works once; sign in without it"
        )
    if now >= invitation.expires_at:
        raise NotAuthenticated(
            f"this invitation expired at {invitation.expires_at:%Y-%m-%d %H:%M} UTC, or a newer one replaced it; ask "
            "an administrator for a new one"
        )
    return invitation


@transaction.atomic
def invitation_use(*, digest: str, person: Person, now: datetime) -> User:
    """Link the person's account to the invited user, who is returned.

    Raises:
        NotAuthenticated: as `invitation_get`, or the account is another user's, or the user another account's.
    """
    user = invitation_get(digest=digest, now=now).user
    if not Invitation.objects.filter(digest=digest, used_at=None).update(used_at=now):
        raise NotAuthenticated("this invitation was used just now and works once; sign in without it")
    known = Identity.objects.select_related("user").filter(issuer=person.issuer, subject=person.subject).first()
    if known is not None and known.user_id != user.pk:
        raise NotAuthenticated(
            f"this account of the provider belongs to user {known.user.username!r} already, so it cannot be linked to "
            f"{user.username!r}; sign in with another account, or ask an administrator"
        )
    own = Identity.objects.filter(user=user).first()
    if own is not None and own.issuer == person.issuer and own.subject != person.subject:
        raise NotAuthenticated(
            f"user {user.username!r} belongs to another account of the provider already; ask an administrator"
        )
    if known is None:
        identity_link(user=user, person=person, now=now)
    return user


def invitations_forget(*, now: datetime) -> int:
    """Delete the invitations that ended a month ago, and return their number."""
    return Invitation.objects.filter(expires_at__lte=now - _KEPT_AFTER_END).delete()[0]
