"""A service in a pool as it is observed while its own replicas start, answer and end, and how its stage is kept."""

from dataclasses import replace
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


OUTSIDE = "digits-00002"


def moving(stage: Stage, *, loaded: bool = True, own: bool = True) -> dict[str, ObservedRevision]:
    """Return what is seen of a revision in a pool and of one outside it; each has a ready pod of its own."""
    names = {OUTSIDE: OUTSIDE, **({NAME: "own"} if own else {})}
    labels = {name: {SERVICE: "digits", REVISION: name} for name in names}
    found = Found(
        deployments=[{"metadata": {"name": name}, "spec": {"replicas": 1}} for name in names],
        pods=[_pod(pod, labels[name]) for name, pod in names.items()],
        slices=[_slice(pod, labels[name]) for name, pod in names.items()],
        routes=[_route(stage, confirmed=True, before=None)],
    )
    of_pool = Found(pods=[_pod("warm", {SERVICE: "warm"})], slices=[_slice("warm", {SERVICE: "warm"})])
    entry = ENTRY if loaded else replace(ENTRY, loaded=frozenset())
    seen = observed_in_pool("default", "digits", entry, found, GATEWAY, pool=of_pool)
    return {each.name: each for each in seen.revisions}


@pytest.mark.parametrize(
    ("stage", "answering", "is_ready"),
    [
        pytest.param(Stage.POOL, "warm", False, id="the pool answers"),
        pytest.param(Stage.OWN, "own", False, id="own replicas answer, by rules beside the pool's"),
        pytest.param(Stage.TWICE, "own", False, id="rules of old are still there"),
        pytest.param(Stage.PLAIN, "own", True, id="routes are those of a service without a pool"),
    ],
)
def test_a_revision_outside_the_pool_is_ready_once_routes_are_ordinary_ones(
    stage: Stage, answering: str, is_ready: bool
) -> None:
    found = moving(stage)
    assert [each.name for each in found[NAME].replicas] == [answering]
    assert found[OUTSIDE].ready_replicas == is_ready
    assert is_ready or "gets requests once" in found[OUTSIDE].replicas[0].message


def test_a_revision_that_comes_into_a_pool_is_ready_once_it_is_loaded_and_has_own_replicas() -> None:
    unloaded, without = moving(Stage.PLAIN, loaded=False)[NAME], moving(Stage.PLAIN, own=False)[NAME]
    assert (unloaded.ready_replicas, unloaded.replicas[0].message) == (0, "pool warm loads its model")
    assert (without.ready_replicas, without.replicas[0].message) == (0, "its replicas start")


def test_what_was_confirmed_is_as_a_release_before_wrote_it_while_the_pool_answers() -> None:
    assert '"own"' not in Routed(1, {NAME: 100}).to_json()
    assert '"own": "known"' in Routed(1, {NAME: 100}, own="known").to_json()
