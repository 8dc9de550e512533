"""Envoy Gateway's policies of limits and of web pages of other origins: what they count, and what they answer."""

import json
from dataclasses import dataclass, replace
from typing import Any

import pytest

from common.errors import InvalidInput
from integrations.clusters.base import Access, CallerKeys, Cors, Limits, Patch
from integrations.clusters.kubernetes.manifests import policies, render
from integrations.clusters.kubernetes.manifests.names import SERVICE
from integrations.clusters.kubernetes.manifests.routes.security_policy import with_keys
from integrations.clusters.local.envoy.access import OURS
from tests.integrations._support.manifests import given

_APP = "https://app.example.com"
_EACH = {"clientSelectors": [{"headers": [{"name": "fairlead-caller", "type": "Distinct"}]}]}


def specs(access: Access | None, **more: Any) -> dict[str, Any]:
    return {each["kind"]: each["spec"] for each in policies(replace(given("preview")[0], access=access, **more))}


def rule(per_second: int) -> dict[str, Any]:
    return {"limit": {"requests": per_second, "unit": "Second"}, "shared": True}


@pytest.mark.parametrize(
    ("access", "limits", "rules"),
    [
        (Access(), Limits(200, 20), [rule(200), {**_EACH, **rule(20)}]),
        (Access(), Limits(None, 20), [{**_EACH, **rule(20)}]),
        (None, Limits(200, None), [rule(200)]),
        (None, Limits(200, 20), [rule(20)]),  # nobody checks who calls: all requests are one caller's
    ],
)
def test_limits_are_shared_by_all_routes_and_a_caller_is_who_has_a_key(
    access: Access | None, limits: Limits, rules: list[dict[str, Any]]
) -> None:
    spec = specs(access, limits=limits)["BackendTrafficPolicy"]
    assert spec["rateLimit"] == {"global": {"rules": rules}}
    assert {each["matchLabels"][SERVICE] for each in spec["targetSelectors"]} == {"digits"}


def test_a_public_service_has_only_the_policies_that_its_file_needs() -> None:
    assert specs(None) == {}
    assert specs(None, limits=Limits(5)).keys() == {"BackendTrafficPolicy"}
    made = specs(None, cors=Cors((_APP,)))
    assert made.keys() == {"SecurityPolicy"}
    assert made["SecurityPolicy"].keys() == {"targetSelectors", "cors", "mergeType"}, "the Gateway's own goes on"


def test_a_push_of_keys_leaves_origins_as_they_are_and_policies_without_callers_alone() -> None:
    keys = CallerKeys(revoked=("f" * 32,))
    for access in (Access(), None):
        live = policies(replace(given("preview")[0], access=access, cors=Cors((_APP,))))[0]
        live["metadata"]["ownerReferences"] = []
        renewed = with_keys(live, keys)
        if access is None:
            assert renewed is None
        else:
            assert renewed is not None
            assert renewed["spec"]["cors"] == live["spec"]["cors"]


def test_refusals_have_v2s_error_object_and_pages_of_named_origins_may_read_them() -> None:
    found = specs(Access(), limits=Limits(5), cors=Cors((_APP,)))["BackendTrafficPolicy"]["responseOverride"]
    *over_http, over_grpc = found
    assert all(each["source"] == "Local" for each in found)
    of_page, others = over_http[:3], over_http[3:]
    assert [each["match"]["statusCodes"][0]["value"] for each in over_http] == [401, 403, 429] * 2
    for each in of_page:
        assert each["match"]["responseHeaders"][0]["value"]["value"] == _APP
        assert {"name": "access-control-allow-origin", "value": _APP} in each["response"]["header"]["set"]
    assert "access-control" not in json.dumps(others)
    assert all("error" in json.loads(each["response"]["body"]["inline"]) for each in over_http)
    assert {"name": "grpc-status", "value": "8"} in over_grpc["response"]["header"]["set"]


def test_preflights_have_a_rule_of_each_address() -> None:
    of, shares, options = given("preview")
    made = render(replace(of, cors=Cors((_APP,))), shares, replace(options, domain="example.org"))
    routes = {each["metadata"]["name"]: each["spec"]["rules"] for each in made if each["kind"] == "HTTPRoute"}
    matches = {name: [match for rule in rules for match in rule["matches"]] for name, rules in routes.items()}
    found = {name: [each for each in some if each.get("method") == "OPTIONS"] for name, some in matches.items()}
    preflights = {name: some for name, some in found.items() if some}
    assert preflights.keys() == {"digits", "digits-host", "digits-preview", "digits-preview-host"}
    for (match,) in preflights.values():
        assert {each["name"] for each in match["headers"]} == {"origin", "access-control-request-method"}
    assert max(map(len, routes.values())) <= 16


ADDED = {
    "type": "RequestHeaderModifier",
    "requestHeaderModifier": {"set": [{"name": "x-a", "value": "1"}], "remove": ["x-b"]},
}


@pytest.mark.parametrize(
    ("operation", "others"),
    [
        pytest.param({"op": "remove", "path": "/spec/rules/0/filters"}, [], id="removed"),
        pytest.param({"op": "add", "path": "/spec/rules/0/filters", "value": [ADDED]}, ["x-b"], id="replaced"),
        pytest.param({"op": "add", "path": "/spec/rules/0/filters/-", "value": ADDED}, ["x-b"], id="one more"),
    ],
)
def test_no_patch_lets_forged_callers_through(operation: dict[str, Any], others: list[str]) -> None:
    of, shares, options = given("base")
    (revision,) = of.revisions
    patch = Patch("patches[0]", "HTTPRoute", operations=(operation,))
    for each in render(replace(of, revisions=(replace(revision, patches=(patch,)),)), shares, options):
        if each["kind"] not in ("HTTPRoute", "GRPCRoute"):
            continue
        for number, rule in enumerate(each["spec"]["rules"]):
            (modifier,) = (one for one in rule["filters"] if one["type"] == "RequestHeaderModifier")
            patched = each["kind"] == "HTTPRoute" and number == 0
            assert modifier["requestHeaderModifier"]["remove"] == [*OURS, *(others if patched else [])]
            assert ("set" in modifier["requestHeaderModifier"]) == (patched and bool(others))


@dataclass(frozen=True)
class LaterLimits(Limits):
    requests_at_once: int | None = None


def test_limits_that_the_driver_cannot_enforce_are_refused_by_name() -> None:
    of, shares, options = given("base")
    render(replace(of, limits=LaterLimits(5, 5)), shares, options)
    with pytest.raises(
        InvalidInput, match=r"spec\.limits of digits: requests_at_once cannot be honoured on Kubernetes"
    ):
        render(replace(of, limits=LaterLimits(requests_at_once=3)), shares, options)
    for limits, name in ((Limits(rows_per_minute=5), "rowsPerMinute"), (Limits(caller_rows_per_minute=5), "perCaller")):
        with pytest.raises(InvalidInput, match=rf"spec\.limits of digits: {name}.* cannot be kept on Kubernetes"):
            render(replace(of, limits=limits), shares, options)


@pytest.mark.parametrize(
    ("limits", "sentence"),
    [
        (
            Limits(caller_concurrent_requests=4),
            r"perCaller\.concurrentRequests cannot be kept on Kubernetes: .*replicas",
        ),
        (Limits(5, 5, request_bytes=1000), r"requestBytes cannot be kept on Kubernetes: .* gRPC streams"),
    ],
)
def test_limits_that_kubernetes_cannot_keep_are_refused_with_the_reason(limits: Limits, sentence: str) -> None:
    of, shares, options = given("base")
    with pytest.raises(InvalidInput, match=rf"^spec\.limits of digits: {sentence}.*; leave it out"):
        render(replace(of, limits=limits), shares, options)
