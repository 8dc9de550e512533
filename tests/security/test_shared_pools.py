"""Attacks from a namespace that a pool on Kubernetes is shared with, and from one that it is not shared with."""

from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from integrations.clusters.base import Desired, DesiredRevision, Patch
from integrations.clusters.kubernetes.manifests import render
from integrations.clusters.kubernetes.manifests.patched import check_target
from integrations.clusters.kubernetes.options import GatewayReference, Options

POOL = DesiredRevision("warm-00001", "warm", "1", "", "", 2, 100, is_pool=True)
OWN = DesiredRevision("spy-00001", "spy", "1", "file:///models/a", "sha256:aa", 1, 100)
OPTIONS = Options(GatewayReference("gateway", "gateways"), "runtime:1", "models", "/models")
STOLEN = {"group": "", "kind": "Service", "name": "warm-replicas", "namespace": "models", "port": 8000}
PATH = "/spec/rules/0/backendRefs"
COPY = {"type": "RequestMirror", "requestMirror": {"backendRef": STOLEN}}


def rendered(*patches: Patch) -> list[dict[str, Any]]:
    desired = Desired("vision", "spy", 1, (replace(OWN, patches=patches),))
    return render(desired, {OWN.name: 100}, OPTIONS)


@pytest.mark.parametrize("kind", ["HTTPRoute", "GRPCRoute"])
@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "add", "path": f"{PATH}/0/namespace", "value": "models"}, id="its backend elsewhere"),
        pytest.param({"op": "add", "path": f"{PATH}/-", "value": STOLEN}, id="one more backend"),
        pytest.param({"op": "add", "path": "/spec/rules/0/filters", "value": [COPY]}, id="copies"),
        pytest.param({"op": "add", "path": "/spec/rules/-", "value": {"backendRefs": [STOLEN]}}, id="one more rule"),
    ],
)
def test_a_patch_leads_no_route_of_another_service_to_a_pool(kind: str, operation: dict[str, Any]) -> None:
    rendered()
    with pytest.raises(InvalidInput, match="backendRefs, copies and the removal of the key"):
        rendered(Patch("spec.patches[0]", kind, operations=(operation,)))


def test_a_patch_of_the_pool_shares_no_other_service_of_its_namespace() -> None:
    with pytest.raises(InvalidInput, match="is for 'ReferenceGrant'"):
        check_target(Patch("spec.patches[0]", "ReferenceGrant", merge={"spec": {"to": [{"kind": "Service"}]}}))


def test_a_shared_pool_is_opened_for_routes_of_the_named_namespaces_and_for_nothing_else() -> None:
    made = render(Desired("models", "warm", 1, (POOL,), shared_with=("vision",)), {}, OPTIONS)
    (grant,) = [each for each in made if each["kind"] == "ReferenceGrant"]
    assert {each["namespace"] for each in grant["spec"]["from"]} == {"vision"}
    assert {each["group"] for each in grant["spec"]["from"]} == {"gateway.networking.k8s.io"}
    assert grant["spec"]["to"] == [{"group": "", "kind": "Service", "name": "warm-replicas"}]
    (role,) = [each for each in made if each["kind"] == "Role"]
    assert [rule["verbs"] for rule in role["rules"]] == [["get"]], (
        "its fetchers read its catalog, wherever models are of"
    )
    assert {each["metadata"]["namespace"] for each in made} == {"models"}


def test_a_service_names_itself_to_a_pool_of_another_namespace_whatever_its_client_says() -> None:
    pooled = DesiredRevision("spy-00001", "spy", "1", "file:///a", "sha256:aa", 1, 100, pool="models/warm")
    made = render(Desired("vision", "spy", 1, (pooled,), preview=pooled.name), {pooled.name: 100}, OPTIONS)
    refs = [ref for each in made for rule in each["spec"]["rules"] for ref in rule["backendRefs"]]
    for ref in refs:
        its = [each["requestHeaderModifier"] for each in ref["filters"] if "requestHeaderModifier" in each]
        assert [{one["name"]: one["value"] for one in each["set"]}["fairlead-service"] for each in its] == [
            "vision/spy"
        ]
    assert refs
