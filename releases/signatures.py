"""Signatures by Ed25519 keys: of the file of sums, and of the provenance in its envelope (DSSE 1.0).

Keys are PEM files as `openssl genpkey -algorithm ed25519` makes them. Ed25519 needs no randomness, so that one key
signs equal bytes by equal bytes.
"""

import base64
import binascii
import hashlib
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from releases.errors import ReleaseError

PAYLOAD_TYPE = "application/vnd.in-toto+json"
LENGTH_BYTES = 64
_MOST_SIGNATURES = 8


def private_key(file: Path) -> Ed25519PrivateKey:
    """Read RELEASE_KEY; raises ReleaseError where the file has no such key."""
    try:
        key = load_pem_private_key(file.read_bytes(), password=None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise ReleaseError(f"RELEASE_KEY {file} is no unencrypted PEM of a private key: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise ReleaseError(f"RELEASE_KEY {file} is no Ed25519 key: make one by openssl genpkey -algorithm ed25519")
    return key


def public_key(file: Path) -> Ed25519PublicKey:
    """Read RELEASE_PUBLIC_KEY; raises ReleaseError where the file has no such key."""
    try:
        key = load_pem_public_key(file.read_bytes())
    except (OSError, ValueError, UnsupportedAlgorithm) as error:
        raise ReleaseError(f"RELEASE_PUBLIC_KEY {file} is no PEM of a public key: {error}") from error
    if not isinstance(key, Ed25519PublicKey):
        raise ReleaseError(f"RELEASE_PUBLIC_KEY {file} is no Ed25519 key: ask for the one of the release")
    return key


def key_id(key: Ed25519PublicKey) -> str:
    """Return the SHA-256 of a key's 32 bytes, in hex."""
    return hashlib.sha256(key.public_bytes_raw()).hexdigest()


def check(signature: bytes, content: bytes, key: Ed25519PublicKey, name: str) -> None:
    """Raise ReleaseError unless the key made the signature of this content.

    Args:
        name: the file with the signature, for the message.
    """
    if len(signature) != LENGTH_BYTES:
        raise ReleaseError(
            f"{name} has {len(signature)} bytes, and an Ed25519 signature {LENGTH_BYTES}: fetch the release again"
        )
    try:
        key.verify(signature, content)
    except InvalidSignature as error:
        raise ReleaseError(
            f"{name} has no signature by the key {key_id(key)[:16]}: use nothing of this release until its makers "
            "confirm the key"
        ) from error


def envelope(payload: bytes, key: Ed25519PrivateKey | None) -> dict[str, Any]:
    """Return a DSSE envelope; without a key it has no signatures."""
    signatures = []
    if key is not None:
        made = key.sign(_encoded(payload))
        signatures = [{"keyid": key_id(key.public_key()), "sig": base64.b64encode(made).decode()}]
    return {"payloadType": PAYLOAD_TYPE, "payload": base64.b64encode(payload).decode(), "signatures": signatures}


def opened(document: Any, name: str, key: Ed25519PublicKey | None) -> bytes:
    """Return the payload of an envelope; raises ReleaseError where it is none, or not signed by the key.

    Args:
        name: the file's, for the message.
        key: whose signature is needed; None accepts any.
    """
    try:
        kind, signatures = document["payloadType"], document["signatures"]
        payload = base64.b64decode(document["payload"], validate=True)
        made = [base64.b64decode(each["sig"], validate=True) for each in signatures[:_MOST_SIGNATURES]]
    except (KeyError, TypeError, ValueError, binascii.Error) as error:
        raise ReleaseError(f"{name} is no DSSE envelope: fetch the release again") from error
    if kind != PAYLOAD_TYPE:
        raise ReleaseError(f"{name} has the payload type {str(kind)[:60]!r}, not {PAYLOAD_TYPE}")
    if key is None:
        return payload
    if not made:
        raise ReleaseError(f"{name} has no signature, and RELEASE_PUBLIC_KEY is given: this release is not signed")
    check(made[0], _encoded(payload), key, name)
    return payload


def _encoded(payload: bytes) -> bytes:
    """Return what is signed (DSSE: pre-authentication encoding)."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
