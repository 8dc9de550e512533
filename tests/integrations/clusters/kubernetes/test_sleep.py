"""Services that may sleep on Kubernetes: what is rendered, what the numbers of replicas become, what is observed."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from common.errors import InvalidInput
from integrations.clusters.base import CallerKeys, Desired, DesiredCompanion, DriftPolicy
from integrations.clusters.kubernetes.apply.apply_service import Applier
from integrations.clusters.kubernetes.manifests import policies, render
from integrations.clusters.kubernetes.manifests.names import GENERATION, REVISION, SLEPT
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.manifests.routes.own_replicas import Own
from integrations.clusters.kubernetes.manifests.routes.security_policy import with_keys
from integrations.clusters.kubernetes.observe.drift import FIELD_MANAGER, WAKER
from integrations.clusters.kubernetes.observe.gateway_features import refuse_sleep
from integrations.clusters.kubernetes.observe.observation import Found, observed
from integrations.clusters.kubernetes.options import GatewayReference, WakerReference
from tests.integrations._support.manifests import given

NAME, SLEPT_AT = "digits-00001", 1767225600.25
WAKER_SERVICE = WakerReference("fairlead-waker", "fairlead")
GATEWAY = GatewayReference("gateway", "gateways")


def desired(replicas: int = 0, **changed: Any) -> Desired:
    of = given("asleep")[0]
    return replace(of, revisions=(replace(of.revisions[0], replicas=replicas, **changed),))


def security_policy(of: Desired, **more: Any) -> dict[str, Any]:
    made = policies(of, **more)[0]
    made["metadata"]["ownerReferences"] = []
    return made


def test_the_waker_is_named_whether_the_service_sleeps_or_not_and_new_keys_keep_it() -> None:
    for replicas in (0, 1):
        made = security_policy(desired(replicas), waker=WAKER_SERVICE)
        named = {each["name"]: each["value"] for each in made["spec"]["extAuth"]["contextExtensions"]}
        assert named == {"namespace": "default", "service": "digits", "revision": NAME}
        renewed = with_keys(made, CallerKeys(revoked=("2" * 32,)))
        assert renewed is not None
        assert renewed["spec"]["extAuth"] == made["spec"]["extAuth"]
    for other in (security_policy(desired()), security_policy(desired(1, may_sleep=False), waker=WAKER_SERVICE)):
        assert "extAuth" not in other["spec"]


def test_requests_go_to_services_addresses_only_until_a_replica_is_ready() -> None:
    of, shares, options = given("asleep")
    for waits in (True, False):
        made = {each["kind"]: each for each in render(of, shares, options, waits=waits)}
        assert (made["BackendTrafficPolicy"]["spec"].get("routingType") == "Service") is waits
        assert made["Deployment"]["metadata"]["annotations"] == {SLEPT: "1767225600.25"}


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"waker": None}, "the cluster has no waker"),
        ({"access": None}, "everybody may call it"),
        ({"transformer": DesiredCompanion("x:1", 1, http_port=8080)}, "it has a transformer"),
    ],
)
def test_a_service_that_could_not_be_woken_is_refused(changed: dict[str, Any], why: str) -> None:
    of, _, options = given("asleep")
    refuse_sleep(of, options)
    if "waker" in changed:
        options = replace(options, **changed)
    elif "access" in changed:
        of = replace(of, **changed)
    else:
        of = desired(**changed)
    with pytest.raises(InvalidInput, match=why) as refused:
        refuse_sleep(of, options)
    assert refused.value.field == "spec.predictor.minReplicas"
    refuse_sleep(replace(of, revisions=(replace(of.revisions[0], may_sleep=False),)), options)


def deployment(replicas: int, managers: str, slept_at: float | None = SLEPT_AT) -> dict[str, Any]:
    fields = {"f:spec": {"f:replicas": {}}}
    written = {"operation": "Apply", "subresource": "scale", "fieldsV1": fields}
    managed = [{"manager": manager, **written} for manager in managers.split()]
    annotations = {} if slept_at is None else {SLEPT: repr(slept_at)}
    metadata = {"name": NAME, "labels": {REVISION: NAME}, "annotations": annotations, "managedFields": managed}
    return {"kind": "Deployment", "metadata": metadata, "spec": {"replicas": replicas}}


@dataclass
class Numbers:
    """The Deployments of an API server, and the numbers that it is sent."""

    found: dict[str, Any]
    sent: list[int] = field(default_factory=list)

    def list(self, *_: object) -> list[dict[str, Any]]:
        return [self.found]

    def scale(self, _kind: object, _metadata: object, replicas: int) -> None:
        self.sent.append(replicas)


@pytest.mark.parametrize(
    ("there", "wanted", "sent"),
    [
        (deployment(1, WAKER), desired(0), []),  # woken, which the reconciler does not know yet
        (deployment(1, WAKER), desired(1), [1]),  # it knows, and the number is its own again
        (deployment(1, f"{WAKER} {FIELD_MANAGER}"), desired(1), []),  # as the API server has it then
        (deployment(1, f"{WAKER} {FIELD_MANAGER}"), desired(0), [0]),
        (deployment(1, FIELD_MANAGER), desired(1), []),
        (deployment(1, FIELD_MANAGER), desired(0), [0]),
        (deployment(1, WAKER), desired(0, slept_at=SLEPT_AT + 60), [0]),  # of an earlier sleep
        (deployment(1, WAKER, None), desired(0, slept_at=None), [0]),  # stopped
        (deployment(1, WAKER), desired(2), [2]),
    ],
)
@pytest.mark.parametrize("drift", DriftPolicy)
def test_a_woken_replica_stays_until_the_reconciler_knows(
    there: dict[str, Any], wanted: Desired, sent: list[int], drift: DriftPolicy
) -> None:
    numbers = Numbers(there)
    applier = Applier(numbers, given("asleep")[2])  # type: ignore[arg-type]
    assert applier._scale(replace(wanted, drift=drift), Own()) == []
    assert numbers.sent == sent


def route() -> dict[str, Any]:
    parent = {"name": "gateway", "namespace": "gateways"}
    held = [{"type": kind, "status": "True", "observedGeneration": 1} for kind in ("Accepted", "ResolvedRefs")]
    metadata = {"name": "digits", "namespace": "default", "generation": 1, "annotations": {GENERATION: "4"}}
    return {
        "kind": "HTTPRoute",
        "metadata": metadata,
        "spec": {"parentRefs": [parent], "rules": [{"backendRefs": [{"name": NAME, "weight": 100}]}]},
        "status": {"parents": [{"parentRef": parent, "conditions": held}]},
    }


@pytest.mark.parametrize(
    ("there", "slept_at", "woken_at", "weight"),
    [
        (deployment(0, FIELD_MANAGER), SLEPT_AT, None, 100),
        (deployment(1, WAKER), SLEPT_AT, 1767226200.0, 100),
        (deployment(1, FIELD_MANAGER), SLEPT_AT, None, 100),
        (deployment(0, FIELD_MANAGER, None), None, None, 0),
    ],
)
def test_a_sleep_and_its_end_are_observed(
    there: dict[str, Any], slept_at: float | None, woken_at: float | None, weight: int
) -> None:
    entry = Entry("fairlead-digits", "u", "1", generation=4, leaving=False, deleted=False)
    ended = {
        "name": "a",
        "labels": {REVISION: NAME},
        "creationTimestamp": "2025-12-01T00:00:00Z",
        "deletionTimestamp": "x",
    }
    made = {"name": "b", "labels": {REVISION: NAME}, "creationTimestamp": "2026-01-01T00:10:00Z"}
    pods = [{"metadata": metadata, "spec": {"containers": []}} for metadata in (ended, made)]
    found = Found(deployments=[there], routes=[route()], pods=pods)
    (seen,) = observed("default", "digits", entry, found, GATEWAY).revisions
    assert (seen.slept_at, seen.woken_at, seen.weight_percent) == (slept_at, woken_at, weight)
