"""Secrets that are needed again, such as what signs webhooks, as the database keeps them: encrypted.

The key is made from `FAIRLEAD_SECRET_KEY` by HKDF-SHA256 (RFC 5869), another for each purpose, so a copy of the
database alone tells nothing. With another `FAIRLEAD_SECRET_KEY` nothing that was sealed before can be read, and what
needs it says so.
"""

import base64

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from common.errors import Unavailable


def seal(secret: str, *, purpose: str) -> str:
    """Return `secret` encrypted (a Fernet token)."""
    return seal_bytes(secret.encode(), purpose=purpose).decode("ascii")


def seal_bytes(content: bytes, *, purpose: str) -> bytes:
    """Return `content` encrypted, on one line (a Fernet token)."""
    return _cipher(purpose).encrypt(content)


def unseal_bytes(sealed: bytes, *, purpose: str) -> bytes:
    """Return what was sealed for the same purpose; raises what `unseal` raises."""
    try:
        return _cipher(purpose).decrypt(sealed)
    except InvalidToken as error:
        raise Unavailable(
            f"the {purpose} cannot be read with the present FAIRLEAD_SECRET_KEY; start with the one it was kept under, "
            "or replace it"
        ) from error


def unseal(sealed: str, *, purpose: str) -> str:
    """Return what was sealed for the same purpose.

    Raises:
        Unavailable: it was sealed under another `FAIRLEAD_SECRET_KEY`, or changed since.
    """
    return unseal_bytes(sealed.encode(), purpose=purpose).decode()


def _cipher(purpose: str) -> Fernet:
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"fairlead {purpose}".encode())
    return Fernet(base64.urlsafe_b64encode(key.derive(settings.SECRET_KEY.encode())))
