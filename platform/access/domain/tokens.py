"""Tokens of callers: JSON Web Tokens (RFC 7519) signed with ES256 (RFC 7518), which gateways verify by themselves.

A token has the key's name as its subject, an id of its own, and what services ask for: the team, the user where the key
is a person's, and patterns of services. It has no secret that a gateway would have to know.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey

from integrations.clusters.base import KEY_AUDIENCE, KEY_ISSUER

_ALGORITHM = "ES256"


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says.

    Attributes:
        key: the name of the key.
        token_id: of this token; rotating the key gives it another.
        team: owns the key.
        user: whose key it is; empty for that of a program.
        services: patterns of the services that it may call.
        expires_at: in whole seconds.
    """

    key: str
    token_id: str
    team: str
    user: str
    services: tuple[str, ...]
    issued_at: datetime
    expires_at: datetime

    def json(self) -> dict[str, Any]:
        """Return the claims as they are signed."""
        return {
            "iss": KEY_ISSUER,
            "aud": KEY_AUDIENCE,
            "sub": self.key,
            "jti": self.token_id,
            "iat": int(self.issued_at.timestamp()),
            "exp": int(self.expires_at.timestamp()),
            "team": self.team,
            **({"user": self.user} if self.user else {}),
            "services": list(self.services),
            "scope": " ".join(self.services),
        }


def signed(claims: Claims, *, private: str, kid: str) -> str:
    """Return the token, signed with a private key in its JSON form (RFC 7517)."""
    key = ECKey.import_key(json.loads(private))
    return jwt.encode({"alg": _ALGORITHM, "kid": kid}, claims.json(), key, algorithms=[_ALGORITHM])


def new_signing_key(kid: str) -> tuple[str, Mapping[str, str]]:
    """Return a new private key in its JSON form, and its public part as a gateway reads it."""
    key = ECKey.generate_key("P-256", {"kid": kid, "use": "sig", "alg": _ALGORITHM})
    return json.dumps(key.as_dict(private=True)), {name: str(part) for name, part in key.as_dict(private=False).items()}
