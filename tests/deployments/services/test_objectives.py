"""Objectives of a service: changed without a new revision or a new desired state, ended by a file without them."""

from typing import Any

from deployments.models import InferenceService
from deployments.services import service_apply
from deployments.services.dry_run import service_plan
from tests.deployments._support.platform import Platform

OBJECTIVES = {"availability": 99.9, "latency": {"percent": 99, "withinMs": 200}}


def document(platform: Platform, objectives: Any = None) -> dict[str, Any]:
    """Return the service's file with these objectives."""
    found = platform.document()
    if objectives is not None:
        found["spec"]["objectives"] = objectives
    return found


def apply(platform: Platform, objectives: Any = None) -> InferenceService:
    service, _ = service_apply(
        document=document(platform, objectives), namespace=None, name=None, actor="alice", now=platform.clock()
    )
    return service


def test_a_change_reaches_no_revision_and_no_cluster(platform: Platform) -> None:
    platform.live()
    platform.turn()
    before, generation = dict(platform.cluster.desired), apply(platform).generation
    changed = apply(platform, OBJECTIVES)
    platform.turn()
    assert platform.view().objectives == OBJECTIVES
    assert (changed.revisions.count(), changed.rollouts.count()) == (1, 0)
    assert dict(platform.cluster.desired) == before
    assert changed.generation == generation
    assert apply(platform).revisions.count() == 1
    assert platform.view().objectives == {}


def test_a_plan_shows_a_change_of_objectives(platform: Platform) -> None:
    platform.live()
    apply(platform, OBJECTIVES)
    asked = {"namespace": "default", "name": "digits", "actor": "alice", "now": platform.clock()}
    same = service_plan(document=document(platform, OBJECTIVES), **asked).plan
    other = service_plan(document=document(platform, {"availability": 99.5}), **asked).plan
    assert (same.outcome, other.outcome) == ("unchanged", "changed")
    assert other.after["spec"]["objectives"] == {"availability": 99.5}
