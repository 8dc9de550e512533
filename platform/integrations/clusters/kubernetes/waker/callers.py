"""Callers who may wake a service: the check of Envoy's filters for keys, by the same policy. Pure.

Envoy's own checks come after the waker, so that it checks a key itself before it wakes anything. It understands what
`manifests/routes/security_policy.py` writes; by any other rule no one wakes the service. Envoy decides in any case
whether the request is answered.
"""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from integrations.clusters.local.envoy.access import KEY_HEADER

Json = Mapping[str, Any]
_MOST_BYTES = 8192
_ALGORITHMS = ["ES256"]
_CONTAINS = f'.contains(request.headers["{KEY_HEADER}"])'


def may_wake(policy: Json, token: str, now: float) -> bool:
    """Return whether the caller's token suffices by a SecurityPolicy of the driver's; `now` in Unix seconds."""
    try:
        spec = policy["spec"]
        (provider,) = spec["jwt"]["providers"]
        claims = _verified(provider, token, now)
        return claims is not None and _is_allowed(spec["authorization"], claims)
    except (KeyError, TypeError, ValueError, AttributeError):  # changed by someone else
        return False


def _verified(provider: Json, token: str, now: float) -> Json | None:
    """Return the claims of a token that is signed by one of the provider's keys, and valid now; None else."""
    if not 0 < len(token) <= _MOST_BYTES:
        return None
    try:
        claims = jwt.decode(token, _keys(provider["localJWKS"]["inline"]), algorithms=_ALGORITHMS).claims
    except (JoseError, ValueError, TypeError, KeyError, AttributeError, RecursionError):  # what it holds is anyone's
        return None
    audiences = claims.get("aud")
    audiences = [audiences] if isinstance(audiences, str) else audiences
    expires, begins = claims.get("exp"), claims.get("nbf", 0)
    is_valid = (
        claims.get("iss") == provider["issuer"]
        and isinstance(audiences, list)
        and any(each in provider["audiences"] for each in audiences)
        and isinstance(expires, int | float)
        and isinstance(begins, int | float)
        and begins <= now < expires
    )
    return claims if is_valid else None


@lru_cache(maxsize=64)
def _keys(inline: str) -> KeySet:
    return KeySet.import_key_set(json.loads(inline))


def _is_allowed(authorization: Json, claims: Json) -> bool:
    """Return what the first rule says that matches."""
    for rule in authorization["rules"]:
        matches = _says(rule["cel"], claims) if "cel" in rule else _has_all(rule["principal"]["jwt"]["claims"], claims)
        if matches:
            return bool(rule["action"] == "Allow")
    return False


def _says(expression: str, claims: Json) -> bool:
    """Return whether an expression of the driver's holds: of revoked ids, or of a quota of the whole service."""
    if expression == "true":
        return True
    ids, end = json.JSONDecoder().raw_decode(expression)
    if expression[end:] != _CONTAINS:
        raise ValueError(f"no expression of the driver's: {expression[:100]}")
    return str(claims.get("jti", "")) in str(ids)


def _has_all(wanted: Any, claims: Json) -> bool:
    return bool(wanted) and all(_has(each, claims.get(each["name"])) for each in wanted)


def _has(wanted: Json, found: object) -> bool:
    if wanted["valueType"] == "StringArray":
        return isinstance(found, list) and any(each in wanted["values"] for each in found)
    return isinstance(found, str) and found in wanted["values"]
