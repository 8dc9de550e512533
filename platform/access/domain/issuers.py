"""Issuers of tokens other than this installation, and their keys as gateways can use them. Pure."""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import JWKRegistry

from common.errors import InvalidInput

MOST_KEYS = 32
MOST_BYTES = 256 * 1024
"""Of a set of keys."""
_LONGEST = 500
_PARTS = {"RSA": ("n", "e"), "EC": ("crv", "x", "y"), "OKP": ("crv", "x")}
"""Public members of the kinds of keys that gateways verify (RFC 7518, RFC 8037); a symmetric one would be a secret."""
_CURVES = {"EC": {"P-256", "P-384", "P-521"}, "OKP": {"Ed25519"}}
_ALGORITHMS = {"RSA": r"RS(256|384|512)|PS(256|384|512)", "EC": r"ES(256|384|512)", "OKP": "EdDSA"}
_SHORTEST_RSA_BYTES = 256
_LARGEST_RSA_EXPONENT = (1 << 33) - 1
_BASE64URL = re.compile(r"[A-Za-z0-9_-]{1,2000}")


def check_issuer(url: str) -> str:
    """Return the URL as tokens have it in `iss`; raises InvalidInput."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None
        usable = usable and not parts.query and not parts.fragment
    except ValueError:
        usable = False
    if not usable or len(url) > _LONGEST or not url.isascii() or not url.isprintable() or " " in url:
        raise InvalidInput(
            f"issuer is {url[:80]!r}; expected the URL that its tokens have as `iss`, such as https://id.example.com",
            field="issuer",
        )
    return url


def metadata_url(issuer: str) -> str:
    """Return where an issuer publishes the address of its keys (OpenID Connect Discovery 1.0, section 4)."""
    return f"{issuer.rstrip('/')}/.well-known/openid-configuration"


def public_keys(found: Any, *, field: str = "keys") -> tuple[dict[str, str], ...]:
    """Return the keys of a JSON Web Key Set (RFC 7517) that gateways verify signatures with; others are left out.

    Raises:
        InvalidInput: it is no such set, or has no usable key.
    """
    keys = found.get("keys") if isinstance(found, Mapping) else None
    if not isinstance(keys, list):
        raise InvalidInput(f'{field} is no JSON Web Key Set; expected {{"keys": [...]}} (RFC 7517)', field=field)
    usable = tuple(key for each in keys[:MOST_KEYS] if (key := _usable(each)) is not None)
    if not usable:
        raise InvalidInput(
            f"{field} has no key that verifies signatures; expected RSA of 2048 bits and more, EC or Ed25519",
            field=field,
        )
    return usable


def _usable(key: Any) -> dict[str, str] | None:
    """Return a key's public members; None for one of another kind or use, or with a wrong member."""
    if not isinstance(key, Mapping) or key.get("use", "sig") != "sig":
        return None
    kind = key.get("kty")
    if not isinstance(kind, str) or kind not in _PARTS:
        return None
    names = (*_PARTS[kind], *(name for name in ("kid", "alg") if name in key))
    said = {name: part for name in names if isinstance(part := key.get(name), str) and _is_right(kind, name, part)}
    return {"kty": kind, **said} if len(said) == len(names) and _is_key({"kty": kind, **said}) else None


def _is_key(members: Mapping[str, str]) -> bool:
    """Return whether the members are those of a key.

    Where an issuer has no key that Envoy can use, Envoy refuses the keys and revocations of all callers.
    """
    try:
        JWKRegistry.import_key({name: members[name] for name in ("kty", *_PARTS[members["kty"]])}).raw_value  # noqa: B018
    except (JoseError, ValueError):
        return False
    if members["kty"] != "RSA":
        return True
    modulus, exponent = (int.from_bytes(_decoded(members[name])) for name in ("n", "e"))
    return modulus % 2 == 1 and exponent % 2 == 1 and exponent <= _LARGEST_RSA_EXPONENT


def _is_right(kind: str, name: str, part: str) -> bool:
    """Return whether gateways can use a member of a key."""
    if name == "kid":
        return part.isprintable() and len(part) <= _LONGEST
    if name == "alg":
        return re.fullmatch(_ALGORITHMS[kind], part) is not None
    if name == "crv":
        return part in _CURVES[kind]
    return _BASE64URL.fullmatch(part) is not None and (name != "n" or len(_decoded(part)) >= _SHORTEST_RSA_BYTES)


def _decoded(number: str) -> bytes:
    """Return the bytes of a number without leading zeros; empty for a text that is no base64url."""
    try:
        return base64.urlsafe_b64decode(number + "=" * (-len(number) % 4)).lstrip(b"\0")
    except (ValueError, binascii.Error):
        return b""
