"""Signing keys: made at first use, kept encrypted in the database."""

from datetime import datetime

from django.db import transaction

from access.domain.tokens import Claims, new_signing_key, signed
from access.models import SigningKey
from access.services.gateways import push_soon
from common.encryption import seal, unseal
from common.randomness import new_id

PURPOSE = "signing key"
"""Of the encrypted private keys."""


def sign(claims: Claims, *, now: datetime) -> str:
    """Return the token with these claims; raises Unavailable where the secret key of the platform has changed."""
    key = SigningKey.objects.order_by("-id").first() or _made(now)
    return signed(claims, private=unseal(key.sealed, purpose=PURPOSE), kid=key.kid)


@transaction.atomic
def _made(now: datetime) -> SigningKey:
    """Return a new signing key, on its way to gateways; of two made at once both hold, and the newer signs."""
    kid = new_id().hex
    private, public = new_signing_key(kid)
    push_soon()
    return SigningKey.objects.create(
        kid=kid, public=dict(public), sealed=seal(private, purpose=PURPOSE), created_at=now
    )
