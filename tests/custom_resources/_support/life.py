"""Objects in the course of a service's life, with the statuses that the platform writes."""

import json
from collections.abc import Iterator
from typing import Any

from custom_resources.views.status import (
    VersionState,
    policy_status,
    rollout_status,
    service_status,
    version_status,
)
from deployments.models import InferenceService
from deployments.services import rollout_abort, rollout_promote, service_stop
from tests.deployments._support.platform import SIGNATURE, Platform

Json = dict[str, Any]
GENERATION = 3
WIDER = {**SIGNATURE, "outputs": [{"name": "other", "datatype": "INT64", "shape": [-1]}]}
UNSEEN: Json = {"observedGeneration": -1}
"""What the kinds' definitions give an object as its first status."""


def item(kind: str, status: Json, *, generation: int = GENERATION) -> Json:
    """Return an object with a status, as JSON has it."""
    made = {"kind": kind, "metadata": {"name": "digits", "generation": generation}, "spec": {}, "status": status}
    found: Json = json.loads(json.dumps({"apiVersion": "fairlead.dev/v1alpha1", **made}))
    return found


def service(platform: Platform, problem: str = "", *, generation: int = GENERATION) -> Json:
    """Return the InferenceService as its service is now."""
    view = platform.view() if InferenceService.objects.exists() else None
    status = service_status(view, problem, before={}, generation=GENERATION, now=platform.clock())
    return item("InferenceService", status, generation=generation)


def rollout(platform: Platform) -> Json:
    """Return the Rollout as the newest rollout is now."""
    view = platform.view().rollout
    assert view is not None
    return item("Rollout", rollout_status(view, None, before={}, generation=GENERATION, now=platform.clock()))


def version(platform: Platform, state: VersionState | None, problem: str = "") -> Json:
    """Return a ModelVersion of a state."""
    return item("ModelVersion", version_status(state, problem, before={}, generation=GENERATION, now=platform.clock()))


def policy(platform: Platform, problem: str = "") -> Json:
    """Return a RolloutPolicy."""
    return item("RolloutPolicy", policy_status(problem, before={}, generation=GENERATION, now=platform.clock()))


def lives(platform: Platform) -> Iterator[tuple[str, Json]]:
    """Yield what an object is, in words, and the object."""
    yield from _service(platform)
    yield from _others(platform)


def _service(platform: Platform) -> Iterator[tuple[str, Json]]:
    yield "a service that no watcher has seen", item("InferenceService", UNSEEN)
    yield "a service that is not followed yet", service(platform)
    yield "a service refused before it is there", service(platform, "spec.predictor is wrong")
    platform.version(1)
    platform.policy()
    platform.apply()
    yield "a service whose first replica starts", service(platform)
    platform.until(lambda: platform.view().phase == "Ready")
    platform.metrics.serve("digits-00001", 1000, slow=20)
    yield "a service that serves", service(platform)
    yield "a service whose object changed since", service(platform, generation=GENERATION + 1)
    yield "a service refused while it serves", service(platform, "spec.predictor is wrong")
    platform.cluster.most_ready["digits-00001"] = 0
    platform.turn()
    yield "a service whose replica is moved", service(platform)
    platform.cluster.most_ready.clear()
    platform.until(lambda: platform.view().phase == "Ready")
    platform.cluster.broken["digits-00001"] = "out of memory"
    platform.turn()
    yield "a service whose replicas fail", service(platform)
    platform.cluster.broken.clear()
    platform.until(lambda: platform.view().phase == "Ready")

    platform.version(2)
    platform.policy(steps=[{"weight": 10, "pause": True}, {"weight": 50}])
    platform.start()
    yield "a service that rolls out", service(platform)
    yield "a rollout on its way", rollout(platform)
    platform.until(lambda: platform.rollout().phase == "Paused")
    yield "a service whose rollout waits for somebody", service(platform)
    yield "a rollout that waits for somebody", rollout(platform)
    rollout_abort(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    yield "a service whose rollout was aborted", service(platform)
    yield "a rollout that was aborted", rollout(platform)
    platform.start()
    platform.until(lambda: platform.rollout().phase == "Paused")
    platform.apply()
    platform.turn()
    platform.turn()
    assert platform.rollout().phase == "Aborted"
    yield "a service whose object went back during its rollout", service(platform)
    platform.start()
    platform.until(lambda: platform.rollout().phase == "Paused")
    rollout_promote(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
    platform.until(lambda: platform.rollout().phase == "Healthy")
    yield "a service with its new version", service(platform)
    yield "a rollout that ended well", rollout(platform)
    service_stop(namespace="default", name="digits", actor="alice", now=platform.clock())
    platform.until(lambda: platform.view().phase == "Stopped" and platform.view().waits is None)
    yield "a service that is stopped", service(platform)


def _others(platform: Platform) -> Iterator[tuple[str, Json]]:
    yield "a version that no watcher has seen", item("ModelVersion", UNSEEN)
    for phase in ("Importing", "ImportFailed", "Checking", "Rejected", "Ready", "Deleted"):
        yield f"a version that is {phase}", version(platform, VersionState(phase, f"it is {phase}"))
    yield "a version before its import", version(platform, None)
    yield "a version whose aliases are refused", version(platform, VersionState("Ready"), "alias 'x y' is wrong")
    yield "a policy that no watcher has seen", item("RolloutPolicy", UNSEEN)
    yield "a policy that is saved", policy(platform)
    yield "a policy that is refused", policy(platform, "steps is wrong")


def refused_alias(platform: Platform) -> Json:
    """Return a service that serves while the version of its alias is not rolled out."""
    platform.alias(platform.version(1))
    platform.policy()
    platform.apply(uri="models:/digits@champion")
    platform.until(lambda: platform.view().phase == "Ready")
    platform.alias(platform.version(2, signature=WIDER))
    platform.turn()
    platform.turn()
    return service(platform)
