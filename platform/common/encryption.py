"""Encryption at rest of recoverable secrets, such as webhook signing keys.

HKDF-SHA256 (RFC 5869) derives the key from `FAIRLEAD_SECRET_KEY`, another for each purpose, so a copy of the database
alone discloses nothing. Secrets encrypted under one of `FAIRLEAD_SECRET_KEY_FALLBACKS` can be read too, until they are
encrypted again (`manage.py secrets_reseal`); under any other key they cannot, and their users report it.
"""

import base64
from functools import lru_cache

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
    """Return the decrypted secret of the same purpose.

    Raises:
        Unavailable: it was encrypted under another `FAIRLEAD_SECRET_KEY`, or changed since.
    """
    return unseal_bytes(sealed.encode(), purpose=purpose).decode()


def unseal_bytes(sealed: bytes, *, purpose: str) -> bytes:
    """Return the decrypted content of the same purpose; raises what `unseal` raises."""
    try:
        return _ciphers(purpose).decrypt(sealed)
    except InvalidToken as error:
        raise _unreadable(purpose) from error


def resealed(sealed: bytes, *, purpose: str) -> bytes:
    """Return the same content encrypted under the current key, of equal length; the same bytes where it already is.

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
    """Return the cipher that encrypts under the current key and decrypts under earlier ones."""
    return MultiFernet([_cipher(key, purpose) for key in (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS)])


@lru_cache(maxsize=64)
def _cipher(secret_key: str, purpose: str) -> Fernet:
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=f"fairlead {purpose}".encode())
    return Fernet(base64.urlsafe_b64encode(key.derive(secret_key.encode())))
