"""Linked identities: which account of an OpenID provider is which user's."""

from datetime import datetime

from django.db import transaction

from accounts.domain.person import Person
from accounts.models import ApiToken, Identity, User
from accounts.services import audit_record
from common.errors import NotFound


def identity_link(*, user: User, person: Person, now: datetime) -> None:
    """Let the user belong to the provider's account from now on; sessions of an account before it end."""
    before = Identity.objects.filter(user=user).first()
    Identity.objects.filter(user=user).delete()
    Identity.objects.create(user=user, issuer=person.issuer, subject=person.subject)
    if before is not None:
        ApiToken.objects.filter(user=user, is_session=True, revoked_at=None).update(revoked_at=now)
    audit_record(
        actor="fairlead",
        action="user.identify",
        target=f"users/{user.username}",
        now=now,
        before=None if before is None else {"issuer": before.issuer, "subject": before.subject},
        after={"issuer": person.issuer, "subject": person.subject},
    )


@transaction.atomic
def identity_forget(*, username: str, actor: str, now: datetime) -> None:
    """Unlink the user from the provider's account, and end all sessions and tokens of the one who had it.

    The name stays the user's; only an invitation links it to another account. Raises NotFound.
    """
    before = Identity.objects.filter(user__username=username).first()
    if before is None:
        raise NotFound(f"there is no user {username[:150]!r} who signed in at a provider")
    before.delete()
    ApiToken.objects.filter(user__username=username, revoked_at=None).update(revoked_at=now)
    audit_record(
        actor=actor,
        action="user.free",
        target=f"users/{username}",
        now=now,
        before={"issuer": before.issuer, "subject": before.subject},
    )
