"""OpenID Connect claims: who signed in at a provider. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import NotAuthenticated


@dataclass(frozen=True, slots=True)
class Person:
    """A user's identity at a provider.

    Attributes:
        subject: the provider's own name of the account, which it never reassigns.
        username: what a new user would be called; it never finds an existing one.
        groups: None where groups are not used here.
        refusal: why `username` cannot be a new user's name; empty where it can.
    """

    issuer: str
    subject: str
    username: str
    groups: frozenset[str] | None
    refusal: str = ""


def person_of(claims: Mapping[str, Any], *, issuer: str, username_claim: str, groups_claim: str) -> Person:
    """Return the identity in checked claims; raises NotAuthenticated where they give no usable name."""
    username = claims.get(username_claim)
    if not isinstance(username, str) or not username.strip():
        raise NotAuthenticated(
            f"the provider did not say {username_claim!r}, which is the user's name here; an administrator can let it "
            "say that, or choose another claim by FAIRLEAD_OIDC_USERNAME_CLAIM"
        )
    refusal = ""
    if username_claim == "email" and claims.get("email_verified") is not True:
        refusal = (
            f"the provider does not say that the address {username[:150]} is verified (claim email_verified); verify "
            "it there, or ask an administrator for an invitation"
        )
    groups = _groups(claims.get(groups_claim)) if groups_claim else None
    return Person(issuer, str(claims["sub"]), username.strip(), groups, refusal)


def claims_wanted(*, username_claim: str, groups_claim: str) -> frozenset[str]:
    """Return the claims that `person_of` reads, beside `sub`."""
    verified = {"email_verified"} if username_claim == "email" else set()
    return frozenset({username_claim, groups_claim} - {""} | verified)


def _groups(said: object) -> frozenset[str]:
    """Return the names in a claim, which providers write as a list or, for one, as text; empty for other types."""
    return frozenset(
        filter(None, map(str, [said] if isinstance(said, str) else said if isinstance(said, list) else []))
    )
