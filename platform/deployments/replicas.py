"""Sets how many replicas each revision should have. Called by the reconciler, under the service's lock.

The numbers are recorded before the cluster is told, and so is what they were decided by: another worker goes on from
there. Where counters cannot be read nothing is known of the load, and the numbers stay.
"""

from collections.abc import Sequence
from datetime import timedelta

from deployments import capacity, load, rows
from deployments.autoscaling import Bounds, Decision, decide, memory_json, stored_memory
from deployments.desired import Role
from deployments.history import Kind
from deployments.models import Revision
from deployments.recording import Change
from integrations.clusters.base import Observed, ReplicaPhase, Sample


def follows_load(change: Change) -> bool:
    """Return whether any revision's number of replicas depends on its load."""
    return any(_is_chosen(row) for row in change.revisions)


def set_replicas(change: Change, seen: Observed, samples: Sequence[Sample] | None, *, window: timedelta) -> None:
    """Record how many replicas each revision should have now.

    Args:
        samples: the counters of what was seen; None where they could not be read.
        window: for how long fewer must have been enough before some are stopped.
    """
    serving = {
        replica.name
        for revision in seen.revisions
        for replica in revision.replicas
        if replica.phase is ReplicaPhase.READY
    }
    measured = [sample for sample in samples or () if sample.source in serving]
    for row in change.revisions:
        bounds = _bounds(change, row) if _is_chosen(row) else None
        if bounds is not None:
            _set(change, row, measured, bounds, window)


def _is_chosen(row: Revision) -> bool:
    is_used = row.stopped_at is None and row.role in (Role.STABLE, Role.CANARY)
    return is_used and rows.scaling_of(row).is_automatic


def _bounds(change: Change, row: Revision) -> Bounds | None:
    rollout = None if change.rollout is None else rows.rollout_state(change.rollout)
    if row.role == Role.STABLE:
        return capacity.bounds_of_stable(rows.revision_state(row), rollout)
    stable = change.revision(Role.STABLE)
    if stable is None or rollout is None:
        return None
    return capacity.bounds_of_canary(rows.revision_state(stable), rows.revision_state(row), rollout)


def _set(change: Change, row: Revision, measured: Sequence[Sample], bounds: Bounds, window: timedelta) -> None:
    looks = load.looked(load.stored_looks(row.load.get("looks", {})), measured, row.name, change.now.timestamp())
    decision = decide(
        row.replicas,
        load.readings(looks, rows.scaling_of(row).targets),
        bounds,
        stored_memory(row.load.get("memory", {})),
        window=window,
        now=change.now,
    )
    row.load = {"looks": load.looks_json(looks), "memory": memory_json(decision.memory), "why": decision.why}
    # Like the time of the last look, this alone is no change that a page or another reconciler has to hear of.
    Revision.objects.filter(pk=row.pk).update(load=row.load)
    if decision.replicas != row.replicas:
        _scale(change, row, decision)


def _scale(change: Change, row: Revision, decision: Decision) -> None:
    message = f"Scaled from {row.replicas} to {decision.replicas}: {decision.why}"
    row.replicas = decision.replicas
    row.save(update_fields=["replicas"])
    change.event(Kind.REVISION_SCALED, message, revision=row.name)
