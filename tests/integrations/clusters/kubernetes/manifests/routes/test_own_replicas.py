"""Own replicas of a service in a pool: who answers from one apply to the next, and what is rendered for that."""

from dataclasses import replace
from typing import Any

import pytest

from integrations.clusters.base import Access, Desired, DesiredRevision
from integrations.clusters.kubernetes.manifests import Manifest, render
from integrations.clusters.kubernetes.manifests.names import OWN
from integrations.clusters.kubernetes.manifests.routes.own_replicas import Own, Seen, Stage, decide, spared
from integrations.clusters.kubernetes.manifests.routes.pooled import WITHHOLD_POOLS_HEADERS
from tests.integrations._support.pool_options import OPTIONS

POOLED = DesiredRevision("digits-00001", "digits", "1", "file:///models/a", "sha256:aa", 1, 100, pool="default/warm")
EARNED = replace(POOLED, own_replicas=2, own_since=1.0)
CANARY = replace(EARNED, name="digits-00002", model_version="2", artifact_digest="sha256:bb", weight_percent=0)
NAME, OTHER = POOLED.name, CANARY.name
CLOSED = {"type": "Exact", "name": "fairlead-group", "value": "none"}


def desired(*revisions: DesiredRevision, **more: Any) -> Desired:
    return Desired("default", "digits", 1, revisions, **more)


def seen(stage: Stage, ready: int = 0, scale: int = 0, *, confirmed: bool = True, pods: bool | None = None) -> Seen:
    has_pods = scale > 0 if pods is None else pods
    return Seen(stage, confirmed, {NAME: scale}, {NAME: ready}, frozenset({NAME} if has_pods else ()))


@pytest.mark.parametrize(
    ("revision", "there", "loaded", "stage"),
    [
        pytest.param(EARNED, seen(Stage.POOL, 0, 2), {NAME}, Stage.POOL, id="they start"),
        pytest.param(EARNED, seen(Stage.POOL, 1, 2), {NAME}, Stage.KNOWN, id="one is ready"),
        pytest.param(EARNED, seen(Stage.KNOWN, 1, 2, confirmed=False), {NAME}, Stage.KNOWN, id="not confirmed"),
        pytest.param(EARNED, seen(Stage.KNOWN, 1, 2), {NAME}, Stage.OWN, id="the gateway knows them"),
        pytest.param(EARNED, seen(Stage.KNOWN, 0, 2), {NAME}, Stage.POOL, id="none is ready any more"),
        pytest.param(EARNED, seen(Stage.OWN, 2, 2), set(), Stage.OWN, id="they answer"),
        pytest.param(EARNED, seen(Stage.OWN, 0, 2), set(), Stage.KNOWN, id="all have failed"),
        pytest.param(POOLED, seen(Stage.OWN, 2, 2), set(), Stage.OWN, id="the pool loads the model"),
        pytest.param(POOLED, seen(Stage.OWN, 2, 2), {NAME}, Stage.KNOWN, id="the pool has loaded it"),
        pytest.param(POOLED, seen(Stage.KNOWN, 2, 2, confirmed=False), {NAME}, Stage.KNOWN, id="the gateway follows"),
        pytest.param(POOLED, seen(Stage.KNOWN, 2, 2), {NAME}, Stage.KNOWN, id="the pool answers, they are to end"),
        pytest.param(POOLED, seen(Stage.KNOWN, 0, 0, pods=True), {NAME}, Stage.KNOWN, id="they end"),
        pytest.param(POOLED, seen(Stage.KNOWN), {NAME}, Stage.POOL, id="they have ended"),
        pytest.param(POOLED, Seen(), {NAME}, Stage.POOL, id="it never had any"),
    ],
)
def test_who_answers(revision: DesiredRevision, there: Seen, loaded: set[str], stage: Stage) -> None:
    assert decide(desired(revision), there, loaded).stage is stage


def test_they_keep_their_number_until_the_gateway_has_confirmed_the_pool() -> None:
    leaving = desired(POOLED)
    for there in (seen(Stage.OWN, 2, 2), seen(Stage.KNOWN, 2, 2, confirmed=False)):
        own = decide(leaving, there, {NAME})
        assert (own.present, own.held) == ({NAME}, {NAME})
    own = decide(leaving, seen(Stage.KNOWN, 2, 2), {NAME})
    assert (own.present, own.held) == ({NAME}, set()), "now they are scaled to none"
    assert decide(leaving, seen(Stage.KNOWN), {NAME}) == Own(), "nothing is left, so that all objects leave"
    assert decide(desired(EARNED), seen(Stage.OWN, 3, 3), ()).held == set(), "their number follows the load"


def test_in_a_rollout_all_revisions_with_requests_have_them_or_the_pool_answers_for_all() -> None:
    both = frozenset({NAME, OTHER})
    there = Seen(Stage.OWN, True, {NAME: 2, OTHER: 2}, {NAME: 2}, both)
    begun = desired(replace(EARNED, weight_percent=90), replace(CANARY, weight_percent=10))
    assert decide(begun, there, ()).stage is Stage.OWN, "a canary that starts has no requests yet"
    without = desired(replace(EARNED, weight_percent=90), replace(CANARY, weight_percent=10, own_replicas=0))
    assert decide(without, there, {NAME}).stage is Stage.OWN
    assert decide(without, there, both).stage is Stage.KNOWN, "the pool has loaded both"
    assert decide(begun, replace(there, stage=Stage.KNOWN), ()).stage is not Stage.OWN
    assert (spared(begun, Stage.OWN), spared(without, Stage.OWN), spared(begun, Stage.KNOWN)) == (both, set(), set())


def objects(made: list[Manifest]) -> set[str]:
    return {each["kind"] for each in made if not each["kind"].endswith("Route")}


def rules(made: list[Manifest], kind: str, name: str = "digits") -> list[Manifest]:
    return next(each for each in made if (each["kind"], each["metadata"]["name"]) == (kind, name))["spec"]["rules"]


def is_closed(rule: Manifest) -> bool:
    return all(CLOSED in match.get("headers", ()) for match in rule["matches"])


def leads_to_own(rule: Manifest) -> bool:
    return {each["name"] for each in rule["backendRefs"]} == {NAME}


def test_the_pool_answers_alone_until_they_are_ready() -> None:
    alone = render(desired(POOLED), {NAME: 100}, OPTIONS)
    starting = render(desired(EARNED), {NAME: 100}, OPTIONS)
    assert objects(alone) == set()
    assert objects(starting) == {
        *("ServiceAccount", "NetworkPolicy", "Deployment", "Service"),
        *("PodDisruptionBudget", "ConfigMap"),
    }
    assert [each for each in starting if each["kind"].endswith("Route")] == alone


@pytest.mark.parametrize("stage", [Stage.KNOWN, Stage.OWN])
@pytest.mark.parametrize("access", [None, Access()], ids=["public", "guarded"])
def test_the_same_routes_lead_to_the_pool_or_to_them(stage: Stage, access: Access | None) -> None:
    made = render(
        desired(EARNED, access=access, preview=NAME),
        {NAME: 100},
        OPTIONS,
        beside_pool=Own(stage, present=frozenset({NAME})),
    )
    main = next(each for each in made if (each["kind"], each["metadata"]["name"]) == ("HTTPRoute", "digits"))
    assert main["metadata"]["annotations"][OWN] == stage
    withheld = WITHHOLD_POOLS_HEADERS["requestHeaderModifier"]["remove"]
    for name in ("digits", "digits-host", "digits-preview"):
        for kind in ("HTTPRoute", "GRPCRoute"):
            found = rules(made, kind, name)
            assert {is_closed(rule) for rule in found if leads_to_own(rule)} == {stage is Stage.KNOWN}
            assert all(is_closed(rule) for rule in found if not leads_to_own(rule)) == (stage is Stage.OWN)
            assert sorted(found, key=leads_to_own) == found, "places of rules of the pool, and so their clusters, stay"
            for rule in filter(leads_to_own, found):
                changes = [each for each in rule["filters"] if each["type"] == "RequestHeaderModifier"]
                assert [set(withheld) <= set(each["requestHeaderModifier"]["remove"]) for each in changes] == [True]
                assert all("filters" not in each for each in rule["backendRefs"])
    replaced = {
        each["urlRewrite"]["path"]["replacePrefixMatch"]
        for rule in filter(leads_to_own, rules(made, "HTTPRoute"))
        for each in rule["filters"]
        if each["type"] == "URLRewrite"
    }
    assert replaced == {"/v2/models/digits", "/v1/models", "/v2"}


def test_requests_of_a_revision_without_any_go_to_the_pool_alone() -> None:
    canary = replace(CANARY, own_replicas=0)
    own = Own(Stage.OWN, present=frozenset({NAME}))
    made = render(desired(EARNED, canary), {NAME: 100}, OPTIONS, beside_pool=own)
    assert [is_closed(rule) for rule in rules(made, "HTTPRoute") if leads_to_own(rule)] == [False] * 4
    of_canary = rules(made, "HTTPRoute", "digits-version-2")
    assert not any(leads_to_own(rule) or is_closed(rule) for rule in of_canary)


def test_network_policies_stay_until_the_last_pod_is_gone() -> None:
    made = render(desired(POOLED), {NAME: 100}, OPTIONS, beside_pool=Own(pods_remain=True))
    assert {"NetworkPolicy", "ServiceAccount"} <= objects(made)
    assert "Deployment" not in objects(made)


def test_those_of_a_pool_in_another_namespace_are_in_the_services_own() -> None:
    shared = replace(EARNED, pool="speech/warm")
    own = Own(Stage.OWN, present=frozenset({NAME}))
    made = render(desired(shared), {NAME: 100}, OPTIONS, beside_pool=own)
    for rule in rules(made, "HTTPRoute"):
        namespaces = {each.get("namespace") for each in rule["backendRefs"]}
        assert namespaces == ({None} if leads_to_own(rule) else {"speech"})
