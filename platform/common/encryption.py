"""Secrets that are needed again, such as what signs webhooks, as the database keeps them: encrypted.

The key is made from `FAIRLEAD_SECRET_KEY` by HKDF-SHA256 (RFC 5869), another for each purpose, so a copy of the
database alone tells nothing. What was sealed under one of `FAIRLEAD_SECRET_KEY_FALLBACKS` is read too, until it is
sealed anew (`manage.py secrets_reseal`); under any other key nothing can be read, and what needs it says so.
"""

import base64

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

from common.errors import Unavailable


def seal(secret: str, *, purpose: str) -> str:
    """Return `secret` encrypted (a Fernet token)."""
    return seal_bytes(secret.encode(), purpose=purpose).decode("ascii")


def seal_bytes(content: bytes, *, purpose: str) -> bytes:
    """Return `content` encrypted, on one line (a Fernet token)."""
    return _cipher(settings.SECRET_KEY, purpose).encrypt(content)


def unseal(sealed: str, *, purpose: str) -> str:
    """Return what was sealed for the same purpose.

    Raises:
        Unavailable: it was sealed under another `FAIRLEAD_SECRET_KEY`, or changed since.
    """
    return unseal_bytes(sealed.encode(), purpose=purpose).decode()


def unseal_bytes(sealed: bytes, *, purpose: str) -> bytes:
    """Return what was sealed for the same purpose; raises what `unseal` raises."""
    try:
        return _ciphers(purpose).decrypt(sealed)
    except InvalidToken as error:
        raise _unreadable(purpose) from error


def resealed(sealed: bytes, *, purpose: str) -> bytes:
    """Return the same content sealed under the present key, as long as before; the same bytes where it already is.

    Raises what `unseal` raises.
    """
    try:
        _cipher(settings.SECRET_KEY, purpose).decrypt(sealed)
    except InvalidToken:
        pass
    else:
        return sealed
    try:
        return _ciphers(purpose).rotate(sealed)
    except InvalidToken as error:
        raise _unreadable(purpose) from error


def _unreadable(purpose: str) -> Unavailable:
    return Unavailable(
        f"the {purpose} cannot be read with the present FAIRLEAD_SECRET_KEY; name the one it was kept under in "
        "FAIRLEAD_SECRET_KEY_FALLBACKS, or replace it"
    )


def _ciphers(purpose: str) -> MultiFernet:
    """Return what seals under the present key and reads what earlier ones sealed."""
    return MultiFernet([_cipher(key, purpose) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


def _cipher(secret_key: str, purpose: str) -> Fernet:
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"fairlead {purpose}".encode())
    return Fernet(base64.urlsafe_b64encode(key.derive(secret_key.encode())))
