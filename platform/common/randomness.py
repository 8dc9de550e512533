"""Random identifiers and secrets: the one place that they come from, so that a simulation can replace it."""

import secrets
import uuid


def new_id() -> uuid.UUID:
    """Return an identifier that no one else has."""
    return uuid.uuid4()


def new_secret() -> str:
    """Return a secret of 256 bits, as text for URLs and headers."""
    return secrets.token_urlsafe(32)


def new_private_key() -> str:
    """Return a private key of 256 bits, in hexadecimal."""
    return secrets.token_hex(32)
