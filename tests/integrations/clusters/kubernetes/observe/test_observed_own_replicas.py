"""A service in a pool as it is observed while its own replicas start, answer and end, and how its stage is kept."""

from typing import Any

import pytest

from integrations.clusters.base import ObservedRevision, ReplicaPhase
from integrations.clusters.kubernetes.manifests.names import GENERATION, OWN, REVISION, SERVICE
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.manifests.routes.own_replicas import Stage
from integrations.clusters.kubernetes.manifests.routes.pooled import REVISION_HEADER
from integrations.clusters.kubernetes.observe.gateway import Routed
from integrations.clusters.kubernetes.observe.observation import Found, observed_in_pool
from integrations.clusters.kubernetes.options import GatewayReference

GATEWAY = GatewayReference("gateway", "gateways")
NAME, KEY = "digits-00001", "default.digits@1"
ENTRY = Entry(
    *("fairlead-digits", "u", "1"),
    generation=3,
    leaving=False,
    deleted=False,
    pool="warm",
    pooled={NAME: "1"},
    loaded=frozenset({NAME}),
)


def _route(stage: Stage, *, confirmed: bool, before: Routed | None) -> dict[str, Any]:
    parent = {"name": "gateway", "namespace": "gateways"}
    at = 2 if confirmed else 1
    held = [{"type": kind, "status": "True", "observedGeneration": at} for kind in ("Accepted", "ResolvedRefs")]
    named = {"responseHeaderModifier": {"set": [{"name": REVISION_HEADER, "value": NAME}]}}
    backends = [{"name": "warm-replicas", "weight": 50, "filters": [named]}] * 2
    annotations = {GENERATION: "3", OWN: stage.value}
    if before is not None:
        annotations["fairlead/confirmed"] = before.to_json()
    return {
        "kind": "HTTPRoute",
        "metadata": {"name": "digits", "namespace": "default", "generation": 2, "annotations": annotations},
        "spec": {"parentRefs": [parent], "rules": [{"backendRefs": backends}]},
        "status": {"parents": [{"parentRef": parent, "conditions": held}]},
    }


def _pod(name: str, labels: dict[str, str]) -> dict[str, Any]:
    status = {"name": "runtime", "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T12:00:00Z"}}}
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {"containers": [{"name": "runtime"}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [status]},
    }


def _slice(pod: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"labels": labels}, "endpoints": [{"conditions": {"ready": True}, "targetRef": {"name": pod}}]}


def seen(stage: Stage, *, confirmed: bool = True, before: Routed | None = None, ready: bool = True) -> ObservedRevision:
    own, pool = {SERVICE: "digits", REVISION: NAME}, {SERVICE: "warm"}
    found = Found(
        deployments=[{"metadata": {"name": NAME}, "spec": {"replicas": 1}}],
        pods=[_pod("own", own)],
        slices=[_slice("own", own)] if ready else [],
        routes=[_route(stage, confirmed=confirmed, before=before)],
    )
    of_pool = Found(pods=[_pod("warm", {SERVICE: "warm", REVISION: "warm-00001"})], slices=[_slice("warm", pool)])
    (revision,) = observed_in_pool("default", "digits", ENTRY, found, GATEWAY, pool=of_pool).revisions
    return revision


@pytest.mark.parametrize(
    ("stage", "before", "answers"),
    [
        pytest.param(Stage.POOL, None, "warm", id="they start"),
        pytest.param(Stage.KNOWN, None, "warm", id="the gateway knows them"),
        pytest.param(Stage.OWN, None, "own", id="they answer"),
        pytest.param(Stage.OWN, Routed(2, {NAME: 100}, own="known"), "warm", id="not confirmed yet"),
        pytest.param(Stage.KNOWN, Routed(2, {NAME: 100}, own="own"), "own", id="the pool is not confirmed yet"),
    ],
)
def test_replicas_are_those_of_whom_the_gateway_has_confirmed(
    stage: Stage, before: Routed | None, answers: str
) -> None:
    revision = seen(stage, confirmed=before is None, before=before)
    assert [each.name for each in revision.replicas] == [answers]
    assert [each.name for each in revision.own_replicas] == ["own"]
    assert (revision.pooled_as, revision.weight_percent) == ("" if answers == "own" else KEY, 100)


def test_own_replicas_that_answer_and_are_not_ready_have_no_requests() -> None:
    revision = seen(Stage.OWN, ready=False)
    assert [each.phase for each in revision.replicas] == [ReplicaPhase.STARTING]
    assert (revision.ready_replicas, revision.weight_percent) == (0, 0)


def test_what_was_confirmed_is_as_a_release_before_wrote_it_while_the_pool_answers() -> None:
    assert '"own"' not in Routed(1, {NAME: 100}).to_json()
    assert '"own": "known"' in Routed(1, {NAME: 100}, own="known").to_json()
