"""A revision without its transformer or explainer is not ready; without a transformer it has no share either."""

from typing import Any

import pytest

from integrations.clusters.base import CompanionKind, ObservedRevision
from integrations.clusters.kubernetes.manifests.names import COMPANION_LABELS, GENERATION, REVISION, companion_name
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.observe.observation import Found, observed
from integrations.clusters.kubernetes.options import GatewayReference

GATEWAY = GatewayReference("gateway", "gateways")
NAME = "digits-00001"
LABELS = {NAME: {REVISION: NAME}}
LABELS |= {companion_name(NAME, kind): {label: NAME} for kind, label in COMPANION_LABELS.items()}


def _route() -> dict[str, Any]:
    parent = {"name": "gateway", "namespace": "gateways"}
    held = [{"type": kind, "status": "True", "observedGeneration": 1} for kind in ("Accepted", "ResolvedRefs")]
    backend = {"name": companion_name(NAME, CompanionKind.TRANSFORMER), "weight": 100}
    metadata = {"name": "digits", "namespace": "default", "generation": 1, "annotations": {GENERATION: "3"}}
    return {
        "kind": "HTTPRoute",
        "metadata": metadata,
        "spec": {"parentRefs": [parent], "rules": [{"backendRefs": [backend]}]},
        "status": {"parents": [{"parentRef": parent, "conditions": held}]},
    }


def _pod(deployment: str, *, ready: bool) -> dict[str, Any]:
    waiting = {"waiting": {"reason": "CrashLoopBackOff"}}
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "finishedAt": "2026-01-01T12:00:00Z"}}
    container = deployment.removeprefix(f"{NAME}-") if deployment != NAME else "runtime"
    status = {"name": container, "restartCount": 0, "state": {"running": {"startedAt": "2026-01-01T12:00:00Z"}}}
    if not ready:
        status = {"name": container, "restartCount": 3, "state": waiting, "lastState": ended}
    return {
        "metadata": {"name": f"{deployment}-x", "labels": LABELS[deployment]},
        "spec": {"containers": [{"name": container}]},
        "status": {"phase": "Running", "podIP": "10.0.0.1", "containerStatuses": [status]},
    }


def _slice(deployment: str) -> dict[str, Any]:
    endpoint = {"conditions": {"ready": True}, "targetRef": {"name": f"{deployment}-x"}}
    return {"metadata": {"labels": LABELS[deployment]}, "endpoints": [endpoint]}


def seen(*missing: str) -> ObservedRevision:
    """Return the revision with both companions, of whose Deployments some have no ready pod."""
    found = Found(
        deployments=[{"metadata": {"name": name}, "spec": {"replicas": 1}} for name in LABELS],
        pods=[_pod(name, ready=name not in missing) for name in LABELS],
        slices=[_slice(name) for name in LABELS if name not in missing],
        routes=[_route()],
    )
    entry = Entry("fairlead-digits", "u", "1", generation=3, leaving=False, deleted=False)
    (revision,) = observed("default", "digits", entry, found, GATEWAY).revisions
    return revision


def test_a_revision_is_ready_with_all_of_its_companions() -> None:
    revision = seen()
    assert (revision.ready_replicas, revision.weight_percent, revision.message) == (1, 100, "")
    assert set(revision.companions) == set(CompanionKind)
    assert len(revision.all_replicas) == 3


@pytest.mark.parametrize(
    ("kind", "weight"),
    [
        pytest.param(CompanionKind.TRANSFORMER, 0, id="requests reach no transformer"),
        pytest.param(CompanionKind.EXPLAINER, 100, id="predictions are answered without an explainer"),
    ],
)
def test_a_revision_without_a_ready_companion_is_not_ready_and_says_why(kind: CompanionKind, weight: int) -> None:
    revision = seen(companion_name(NAME, kind))
    assert (revision.ready_replicas, revision.weight_percent) == (0, weight)
    assert revision.message.startswith(f"its {kind}: ")
    assert revision.companion_message == revision.message
    assert revision.last_failure is not None


def test_of_several_companions_the_transformer_is_named() -> None:
    revision = seen(*LABELS)
    assert revision.message.startswith("its transformer: ")
