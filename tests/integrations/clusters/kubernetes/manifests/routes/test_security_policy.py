"""Envoy Gateway's policies of a service: what they cover, what a token has to say, and how keys change in them."""

import hashlib
import json
import re
from dataclasses import replace
from typing import Any

import pytest
from joserfc.jwk import ECKey

from access.domain.patterns import parse_patterns
from common.errors import InvalidInput
from integrations.clusters.base import CONSOLE, Access, CallerKeys, Desired, Patch
from integrations.clusters.kubernetes.manifests import policies, render
from integrations.clusters.kubernetes.manifests.names import SERVICE
from integrations.clusters.kubernetes.manifests.routes.security_policy import (
    PLACEHOLDER,
    WITHHOLD_TOKEN,
    patterns_including,
    with_keys,
)
from integrations.clusters.local.envoy.access import OURS, including
from tests.integrations._support.manifests import given

KEYS = CallerKeys(public=({"kty": "EC", "kid": "k1"},), revoked=tuple(f"{number:032x}" for number in range(250)))
OWNERS = [{"kind": "ConfigMap", "name": "fairlead-digits"}]


def desired(access: Access | None = Access()) -> Desired:  # noqa: B008
    return replace(given("preview")[0], access=access)


def security_policy(access: Access = Access(), keys: CallerKeys = KEYS) -> dict[str, Any]:  # noqa: B008
    made = policies(desired(access), keys)[0]
    made["metadata"]["ownerReferences"] = OWNERS
    return made


def test_a_public_service_has_no_policies_and_withholds_callers_that_nobody_checked() -> None:
    made = render(desired(None), {}, given("preview")[2])
    assert {each["kind"] for each in made}.isdisjoint({"SecurityPolicy", "BackendTrafficPolicy"})
    rules = [rule for each in made if each["kind"].endswith("Route") for rule in each["spec"]["rules"]]
    assert rules
    removed = {"type": "RequestHeaderModifier", "requestHeaderModifier": {"remove": [*OURS]}}
    assert all([each for each in rule["filters"] if "Header" in each["type"]] == [removed] for rule in rules)


@pytest.mark.parametrize("case", ["base", "canary", "group", "preview", "shadow"])
def test_every_route_is_covered_and_withholds_the_token(case: str) -> None:
    of, shares, options = given(case)
    made = render(replace(of, access=Access()), shares, replace(options, domain="example.org"))
    routes = [each for each in made if each["kind"].endswith("Route")]
    for policy in (each for each in made if each["kind"].endswith("Policy") and each["kind"] != "NetworkPolicy"):
        selected = {each["kind"]: each["matchLabels"].items() for each in policy["spec"]["targetSelectors"]}
        for route in routes:
            assert selected[route["kind"]] <= route["metadata"]["labels"].items()
            assert route["metadata"]["namespace"] == policy["metadata"]["namespace"]
    assert all(WITHHOLD_TOKEN in rule["filters"] for route in routes for rule in route["spec"]["rules"])
    kinds = [each["kind"] for each in made]
    assert kinds.index("SecurityPolicy") < min(kinds.index("HTTPRoute"), kinds.index("GRPCRoute"))


def test_a_held_service_has_no_route_to_a_revision() -> None:
    of, shares, options = given("preview")
    made = render(replace(of, access=Access()), shares, options, is_held=True)
    routes = {each["kind"]: each for each in made if each["kind"].endswith("Route")}
    assert sum(each["kind"].endswith("Route") for each in made) == len(routes) == 2
    rules = [rule for route in routes.values() for rule in route["spec"]["rules"]]
    assert {ref["name"] for rule in rules for ref in rule["backendRefs"]} == {"fairlead-digits"}
    assert any(each["kind"] == "Service" and each["metadata"]["name"] == "fairlead-digits" for each in made)


@pytest.mark.parametrize("key", ["default/digits", "a/b", "team-a/fraud-cards-2"])
def test_exactly_the_patterns_that_include_a_service_are_listed(key: str) -> None:
    """The same ones as the local gateway's expression matches, and each is a pattern that a key may have."""
    listed = patterns_including(key)
    assert parse_patterns(listed[:50]) == tuple(listed[:50])
    assert all(re.fullmatch(including(key), each) for each in listed)
    others = [f"{key}-2", f"{key}-2*", "prod/*", f"{key[:-1]}", f"x{key}", "**", f"{key[0]}*"]
    assert not any(re.fullmatch(including(key), each) or each in listed for each in others if "/" in each)
    assert len(listed) == len(key.partition("/")[2]) + 3 == len({*listed})


def test_the_longest_name_fits_one_claim() -> None:
    assert len(patterns_including(f"{'n' * 63}/{'s' * 63}")) <= 128


def test_named_callers_have_a_rule_each_and_so_does_the_console() -> None:
    rules = security_policy(Access(teams=("fraud",), users=("alice",)))["spec"]["authorization"]["rules"]
    claims = [rule["principal"]["jwt"]["claims"] for rule in rules if rule["action"] == "Allow"]
    assert all(each[0]["name"] == "services" for each in claims)
    found = [(each[1]["name"], each[1]["values"]) for each in claims]
    assert found == [("team", ["fraud"]), ("user", ["alice"]), ("sub", [CONSOLE])]


def test_revoked_tokens_come_first_in_expressions_that_fit() -> None:
    authorization = security_policy()["spec"]["authorization"]
    assert authorization["defaultAction"] == "Deny"
    denied = [rule["cel"] for rule in authorization["rules"] if rule["action"] == "Deny"]
    assert [rule["action"] for rule in authorization["rules"]] == ["Deny"] * 3 + ["Allow"]
    assert max(map(len, denied)) <= 4096
    assert [each for cel in denied for each in re.findall(r"[0-9a-f]{32}", cel)] == [*KEYS.revoked]


def test_used_quotas_are_denied_before_callers_are_allowed() -> None:
    teams = tuple(f"team-{number}" for number in range(150))
    keys = replace(KEYS, exhausted=teams, exhausted_keys=("ci",), exhausted_services=("other/digits", "default/digits"))
    rules = security_policy(keys=keys)["spec"]["authorization"]["rules"]
    assert [rule["action"] for rule in rules] == ["Deny"] * 7 + ["Allow"]
    quotas = {rule["name"]: rule for rule in rules if rule["name"].startswith("quota-")}
    claims = {name: rule["principal"]["jwt"]["claims"] for name, rule in quotas.items() if "principal" in rule}
    assert [len(each) for each in claims.values()] == [1, 1, 1]
    assert [(each["name"], len(each["values"])) for (each,) in claims.values()] == [
        ("team", 100),
        ("team", 50),
        ("sub", 1),
    ]
    assert {value for (each,) in claims.values() for value in each["values"]} == {*teams, "ci"}
    assert quotas["quota-service"]["cel"] == "true"
    assert with_keys(security_policy(keys=keys), KEYS) == security_policy()
    assert with_keys(security_policy(), keys) == security_policy(keys=keys)
    elsewhere = replace(KEYS, exhausted_services=("other/digits",))
    assert security_policy(keys=elsewhere) == security_policy()


def test_without_keys_the_gateway_gets_one_whose_private_part_nobody_has() -> None:
    (provider,) = security_policy(keys=CallerKeys())["spec"]["jwt"]["providers"]
    assert json.loads(provider["localJWKS"]["inline"]) == {"keys": [PLACEHOLDER]}
    assert ECKey.import_key({**PLACEHOLDER}).curve_name == "P-256"  # which has its x from a text, and is on the curve
    digest = hashlib.sha256(b"fairlead: no private key 5").digest()
    assert ECKey.import_key({**PLACEHOLDER}).public_key.public_numbers().x == int.from_bytes(digest, "big")


def test_other_keys_change_what_they_should_and_the_same_nothing() -> None:
    restricted = Access(teams=("fraud",), keys=("nightly",))
    live = security_policy(restricted)
    assert with_keys(live, KEYS) is None
    other = replace(KEYS, revoked=("f" * 32,))
    assert with_keys(live, other) == security_policy(restricted, other)
    assert with_keys(with_keys(live, CallerKeys()) or {}, KEYS) == live


def test_a_policy_that_was_emptied_by_hand_lets_nobody_in() -> None:
    live = security_policy()
    live["spec"] = {"targetSelectors": live["spec"]["targetSelectors"], "authorization": {"defaultAction": "Allow"}}
    renewed = with_keys(live, CallerKeys())
    assert renewed is not None
    assert renewed["spec"]["authorization"] == {"defaultAction": "Deny", "rules": []}


def test_a_copy_that_somebody_made_of_a_policy_gets_other_keys_too() -> None:
    copied = security_policy()
    del copied["metadata"]["ownerReferences"]
    renewed = with_keys(copied, CallerKeys())
    assert renewed is not None
    assert "ownerReferences" not in renewed["metadata"]


def test_a_patch_cannot_let_the_token_through() -> None:
    of, shares, options = given("base")
    (revision,) = of.revisions
    patch = Patch("patches[0]", "HTTPRoute", operations=({"op": "remove", "path": "/spec/rules/0/filters/0"},))
    patched = replace(of, access=Access(), revisions=(replace(revision, patches=(patch,)),))
    with pytest.raises(InvalidInput, match=r"changes .* the removal of the key of HTTPRoute digits"):
        render(patched, shares, options)
    assert SERVICE in render(of, shares, options)[-1]["metadata"]["labels"]
