"""Whether a caller may wake a service: as Envoy's filters decide by the same policy."""

import base64
import json
from datetime import timedelta
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, OctKey

from access.domain.tokens import new_signing_key
from integrations.clusters.base import CONSOLE, Access, CallerKeys
from integrations.clusters.kubernetes.waker.callers import may_wake
from tests.integrations._support.wakers import GOOD, KEYS, NOW, PRIVATE, PUBLIC, policy, token

OTHER_PRIVATE, _ = new_signing_key("k1")
RESTRICTED = Access(teams=("fraud",), users=("alice",), keys=("nightly",))


def altered(**claims: Any) -> str:
    head, _, signature = token().split(".")
    body = base64.urlsafe_b64encode(json.dumps({**GOOD.json(), **claims}).encode()).rstrip(b"=").decode()
    return f"{head}.{body}.{signature}"


def said(**claims: Any) -> str:
    """Return a token with claims that no installation would sign."""
    key = ECKey.import_key(json.loads(PRIVATE))
    return jwt.encode({"alg": "ES256", "kid": "k1"}, {**GOOD.json(), **claims}, key, ["ES256"])


def unsigned() -> str:
    head = base64.urlsafe_b64encode(b'{"alg":"none","kid":"k1"}').rstrip(b"=").decode()
    return f"{head}.{token().split('.')[1]}."


def signed_by_the_public_key() -> str:
    key = OctKey.import_key(json.dumps(dict(PUBLIC)).encode())
    return jwt.encode({"alg": "HS256", "kid": "k1"}, GOOD.json(), key, ["HS256"])


CREDENTIALS = {
    # the token, whether it suffices for an authenticated service, and for a restricted one
    "none": ("", False, False),
    "valid": (token(), True, True),
    "for every service": (token(services=("*",)), True, True),
    "for names that begin so": (token(services=("prod/x", "default/dig*")), True, True),
    "of another service": (token(services=("default/other",)), False, False),
    "for a longer name": (token(services=("default/digits-2", "default/digits-*")), False, False),
    "of another team": (token(team="risk", key="batch"), True, False),
    "of a user": (token(team="risk", key="batch", user="alice"), True, True),
    "named": (token(team="risk", key="nightly"), True, True),
    "of the console": (token(team="", key=CONSOLE), True, True),
    "revoked": (token(token_id="2" * 32), False, False),
    "expired": (token(expires_at=NOW - timedelta(seconds=1)), False, False),
    "not valid yet": (said(nbf=NOW.timestamp() + 600), False, False),
    "without an end": (said(exp=None), False, False),
    "with a text as its end": (said(exp="9999999999"), False, False),
    "of another audience": (said(aud="fairlead-api"), False, False),
    "of another issuer": (said(iss="elsewhere"), False, False),
    "with a text as services": (said(services="default/*"), False, False),
    "signed by somebody else": (token(private=OTHER_PRIVATE), False, False),
    "altered": (altered(services=["*"]), False, False),
    "unsigned": (unsigned(), False, False),
    "signed with a public key": (signed_by_the_public_key(), False, False),
    "no token": ("flt_abc", False, False),
    "too long": (f"{token()}{'a' * 9000}", False, False),
}


@pytest.mark.parametrize("name", CREDENTIALS)
def test_a_key_wakes_what_it_may_call(name: str) -> None:
    found, of_any, of_named = CREDENTIALS[name]
    assert may_wake(policy(), found, NOW.timestamp()) is of_any
    assert may_wake(policy(RESTRICTED), found, NOW.timestamp()) is of_named


@pytest.mark.parametrize(
    "keys",
    [
        CallerKeys(public=(PUBLIC,), exhausted=("fraud",)),
        CallerKeys(public=(PUBLIC,), exhausted_keys=("ci",)),
        CallerKeys(public=(PUBLIC,), exhausted_services=("default/digits",)),
        CallerKeys(),
    ],
)
def test_neither_used_up_quotas_nor_unknown_keys_wake(keys: CallerKeys) -> None:
    assert not may_wake(policy(keys=keys), token(), NOW.timestamp())


def test_no_one_wakes_by_a_policy_that_others_changed() -> None:
    for part, value in (
        ("jwt", None),
        ("authorization", {"defaultAction": "Allow"}),
        ("authorization", {"rules": [{"action": "Allow", "cel": "1 == 1"}]}),
        ("authorization", {"rules": [{"action": "Allow", "principal": {"clientCIDRs": ["0.0.0.0/0"]}}]}),
        ("authorization", {"rules": [{"action": "Allow", "principal": {"jwt": {"claims": []}}}]}),
    ):
        changed = policy()
        changed["spec"][part] = value
        assert not may_wake(changed, token(), NOW.timestamp())
    assert not may_wake({}, token(), NOW.timestamp())
    assert may_wake(policy(keys=KEYS), token(), NOW.timestamp())
