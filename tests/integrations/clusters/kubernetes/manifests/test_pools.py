"""Pools and services in them: what is rendered, what the catalog says, and what is refused."""

import json
from dataclasses import replace
from typing import Any

import pytest

from common.errors import InvalidInput
from integrations.clusters.base import Desired, DesiredRevision, Limits, Logger, PodFields, Resources
from integrations.clusters.kubernetes.manifests import Manifest, render
from integrations.clusters.kubernetes.manifests.pools import document, shard
from integrations.clusters.kubernetes.manifests.routes.pooled import revision_at
from integrations.clusters.kubernetes.manifests.routes.traffic_policy import traffic_policy
from integrations.clusters.kubernetes.options import GatewayReference, ModelSource, NamespaceGateway
from tests.integrations._support.pool_options import OPTIONS

POOL = DesiredRevision("warm-00001", "warm", "1", "", "", 2, 100, is_pool=True, pool_memory_bytes=1 << 30)
STABLE = DesiredRevision("digits-00001", "digits", "1", "file:///models/a", "sha256:aa", 1, 90, pool="default/warm")
CANARY = replace(STABLE, name="digits-00002", model_version="2", artifact_digest="sha256:bb", weight_percent=10)
ARTIFACTS = "https://control.example.org/api/v1/clusters/eu/workloads/artifacts"


def desired(*revisions: DesiredRevision, service: str = "digits", **more: Any) -> Desired:
    return Desired("default", service, 1, revisions, **more)


def by_name(kind: str, name: str, made: list[Manifest]) -> Manifest:
    return next(each for each in made if (each["kind"], each["metadata"]["name"]) == (kind, name))


def test_only_the_fetcher_of_a_pool_has_tokens_and_writes_the_cache() -> None:
    made = render(desired(POOL, service="warm"), {}, OPTIONS)
    pod = by_name("Deployment", "warm-00001", made)["spec"]["template"]["spec"]
    (fetcher,), (runtime,) = pod["initContainers"], pod["containers"]
    mounts = {
        each["name"]: {one["name"]: one.get("readOnly", False) for one in each["volumeMounts"]}
        for each in (fetcher, runtime)
    }
    assert mounts["fetcher"] == {
        **{"control-plane": True, "account": True},
        **{"cache": False, "pool": False, "fetcher-tmp": False},
    }
    assert mounts["runtime"] == {"cache": True, "pool": True, "tmp": False, "shm": False}
    assert (fetcher["restartPolicy"], pod["automountServiceAccountToken"]) == ("Always", False)
    assert f"--registry={ARTIFACTS}" in fetcher["args"]
    assert "--catalog-config-maps=default/fairlead-warm.catalog" in fetcher["args"]
    assert runtime["args"][:2] == ["--model-pool=/mnt/pool/socket", "--model-memory-budget-bytes=1073741824"]
    assert not any("payload-tap" in each or "registry" in each for each in runtime["args"])
    (rule,) = by_name("Role", "fairlead-warm.catalog", made)["rules"]
    assert (rule["verbs"], len(rule["resourceNames"])) == (["get"], 256)
    assert shard("warm", "default.digits") in rule["resourceNames"]
    own = replace(POOL, pod=PodFields(service_account="reader"))
    binding = by_name("RoleBinding", "fairlead-warm.catalog", render(desired(own, service="warm"), {}, OPTIONS))
    assert [each["name"] for each in binding["subjects"]] == ["reader"]
    assert by_name("Service", "warm-replicas", made)["spec"]["selector"] == {"fairlead/service": "warm"}


@pytest.mark.parametrize(
    ("shares", "weights"),
    [
        pytest.param({STABLE.name: 100}, [(STABLE.name, 50), (STABLE.name, 50)], id="at rest in two halves"),
        pytest.param({STABLE.name: 90, CANARY.name: 10}, [(STABLE.name, 90), (CANARY.name, 10)], id="a canary"),
        pytest.param({CANARY.name: 100}, [(CANARY.name, 50), (CANARY.name, 50)], id="a canary with all"),
    ],
)
def test_every_rule_has_two_backends_of_the_pool(shares: dict[str, int], weights: list[tuple[str, int]]) -> None:
    made = render(desired(STABLE, CANARY), shares, OPTIONS)
    assert {each["kind"] for each in made} == {"HTTPRoute", "GRPCRoute"}
    for name in ("digits", "digits-host"):
        for kind in ("HTTPRoute", "GRPCRoute"):
            for rule in by_name(kind, name, made)["spec"]["rules"]:
                refs = rule["backendRefs"]
                assert {each["name"] for each in refs} == {"warm-replicas"}
                assert [(revision_at(each), each["weight"]) for each in refs] == weights


def test_replicas_of_a_pool_get_the_path_of_the_service_at_every_address() -> None:
    made = render(desired(STABLE, preview=STABLE.name), {STABLE.name: 100}, OPTIONS)
    paths = {
        name: [
            each["urlRewrite"]["path"]["replacePrefixMatch"]
            for rule in by_name("HTTPRoute", name, made)["spec"]["rules"]
            for each in rule.get("filters", ())
            if each["type"] == "URLRewrite"
        ]
        for name in ("digits", "digits-host", "digits-preview")
    }
    base = "/serving/default/digits"
    rewritten = [f"{base}/v2/models/digits", f"{base}/v1/models", f"{base}/v2", f"{base}/v2"]
    assert paths == {"digits": [], "digits-host": rewritten, "digits-preview": rewritten}


def test_envoy_gateway_hashes_the_service_beside_its_limits() -> None:
    assert traffic_policy(desired(STABLE)) == []
    assert traffic_policy(desired(POOL, service="warm"), hashes=True) == []
    (alone,) = traffic_policy(desired(STABLE), hashes=True)
    assert set(alone["spec"]) == {"targetSelectors", "loadBalancer"}
    (limited,) = traffic_policy(desired(STABLE, limits=Limits(requests_per_second=5)), hashes=True)
    assert limited["spec"]["loadBalancer"]["consistentHash"]["headers"] == [{"name": "fairlead-service"}]
    assert "rateLimit" in limited["spec"]


def test_the_catalog_names_the_versions_that_the_pool_answers_for() -> None:
    configured = replace(CANARY, model_config={"max_batch_size": 8})
    stopped = replace(STABLE, name="digits-00003", model_version="3", replicas=0, weight_percent=0)
    assert json.loads(document(desired(STABLE, configured, stopped), OPTIONS)) == {
        "schema": 1,
        "default": 1,
        "versions": {
            "1": {"digest": "sha256:aa", "origin": f"{ARTIFACTS}/sha256:aa", "checked": True},
            "2": {
                "digest": "sha256:bb",
                "origin": f"{ARTIFACTS}/sha256:bb",
                "checked": True,
                "config": {"max_batch_size": 8},
            },
        },
    }
    assert document(desired(stopped), OPTIONS) == ""
    claimed = replace(OPTIONS, models_from=ModelSource.CLAIM, artifacts_claim="models", artifacts_root="/models")
    assert json.loads(document(desired(STABLE), claimed))["versions"]["1"]["origin"] == "/mnt/artifacts/a"


def test_routes_of_another_namespace_lead_to_the_pool_in_its_own_and_its_grant_names_who_may() -> None:
    elsewhere = replace(STABLE, pool="models/warm")
    made = render(desired(elsewhere, preview=STABLE.name), {STABLE.name: 100}, OPTIONS, hashes=True)
    assert {each["metadata"]["namespace"] for each in made} == {"default"}, "routes, and the policy that targets them"
    refs = [ref for each in made for rule in each["spec"].get("rules", ()) for ref in rule["backendRefs"]]
    assert {(each["namespace"], each["name"]) for each in refs} == {("models", "warm-replicas")}
    near = render(desired(STABLE), {STABLE.name: 100}, OPTIONS)
    assert not any("namespace" in ref for each in near for rule in each["spec"]["rules"] for ref in rule["backendRefs"])
    shared = render(desired(POOL, service="warm", shared_with=("speech", "vision")), {}, OPTIONS)
    (grant,) = [each for each in shared if each["kind"] == "ReferenceGrant"]
    assert grant["spec"]["to"] == [{"group": "", "kind": "Service", "name": "warm-replicas"}]
    froms = [(each["kind"], each["namespace"]) for each in grant["spec"]["from"]]
    assert froms == [(kind, each) for each in ("speech", "vision") for kind in ("HTTPRoute", "GRPCRoute")]
    assert not any(each["kind"] == "ReferenceGrant" for each in render(desired(POOL, service="warm"), {}, OPTIONS))


def test_pods_of_a_shared_pool_let_in_the_gateways_of_these_namespaces_and_no_other() -> None:
    further = [NamespaceGateway(GatewayReference(name, name), "", (name,)) for name in ("speech", "vision", "default")]
    options = replace(OPTIONS, gateways=tuple(further))
    its = options.of_namespace("default", ("vision",))
    rule = by_name("NetworkPolicy", "warm", render(desired(POOL, service="warm"), {}, its))["spec"]["ingress"][0]
    found = [each["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"] for each in rule["from"]]
    assert found == ["default", "vision"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"is_code": True}, "cannot serve models that are code"),
        ({"env": {"A": "b"}}, "cannot serve variables"),
        ({"resources": Resources(accelerator="nvidia.com/gpu")}, "cannot serve a GPU"),
        ({"logger": Logger("http://localhost/")}, "cannot serve a payload logger"),
        ({"mirror_percent": 5}, "cannot serve copies of requests"),
        ({"pool": "default/digits"}, "is the service itself"),
    ],
)
def test_what_a_pool_cannot_serve_is_refused(changed: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        render(desired(replace(STABLE, **changed)), {}, OPTIONS)


def test_a_pool_for_all_namespaces_is_refused_since_a_grant_names_each() -> None:
    with pytest.raises(InvalidInput, match=r"shared with \*, and a ReferenceGrant of the Gateway API names each"):
        render(desired(POOL, service="warm", shared_with=("*",)), {}, OPTIONS)


def test_a_service_moves_to_another_pool_by_way_of_own_replicas() -> None:
    there = replace(CANARY, pool="default/cold")
    with pytest.raises(
        InvalidInput, match=r"digits is in pool default/cold, and is to be in default/warm too.*leave pool out"
    ):
        render(desired(STABLE, there), {}, OPTIONS)
    with pytest.raises(InvalidInput, match="digits has revisions that are a pool and others that are not"):
        render(desired(STABLE, replace(CANARY, pool="", is_pool=True)), {}, OPTIONS)
