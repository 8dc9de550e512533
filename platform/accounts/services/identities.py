"""Linked identities: which account of an OpenID provider is which user's."""

from collections.abc import Mapping
from datetime import datetime

from django.db import transaction

from accounts.domain.person import Person
from accounts.models import ApiToken, Identity, User
from accounts.services import audit_record
from common.encryption import seal
from common.errors import NotFound

REFRESH_TOKEN = "refresh token"  # noqa: S105 - the purpose that it is sealed for


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


def identity_confirm(*, user: User, refresh_token: str, now: datetime) -> None:
    """Note that the user signed in at the provider just now; tokens that had ended for want of that work again.

    Args:
        refresh_token: what the provider can be asked with from now on; empty where it gave none.
    """
    identity = Identity.objects.get(user=user)
    had_ended = identity.ended_at is not None
    identity.sealed_refresh_token = seal(refresh_token, purpose=REFRESH_TOKEN) if refresh_token else ""
    identity.checked_at = identity.tried_at = now
    identity.ended_at = None
    identity.save()
    if had_ended:
        _record(identity, "user.confirm", before={"confirmed": False}, after={"confirmed": True}, now=now)


@transaction.atomic
def identity_end(*, identity: Identity, reason: str, now: datetime) -> bool:
    """End the user's sessions and tokens until the next sign-in, unless there was one since `identity` was read."""
    same = Identity.objects.filter(pk=identity.pk, sealed_refresh_token=identity.sealed_refresh_token, ended_at=None)
    if not same.update(ended_at=now, sealed_refresh_token=""):
        return False
    ApiToken.objects.filter(user=identity.user_id, is_session=True, revoked_at=None).update(revoked_at=now)
    detail = {"reason": reason}
    _record(identity, "user.expire", before={"confirmed": True}, after={"confirmed": False}, now=now, detail=detail)
    return True


def _record(
    identity: Identity,
    action: str,
    *,
    before: Mapping[str, object],
    after: Mapping[str, object],
    now: datetime,
    detail: Mapping[str, object] | None = None,
) -> None:
    target = f"users/{identity.user.username}"
    audit_record(actor="fairlead", action=action, target=target, now=now, before=before, after=after, detail=detail)


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
