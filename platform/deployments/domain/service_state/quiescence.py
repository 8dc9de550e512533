"""Quiescence: whether a service is settled, so that sweeps can skip it. Pure.

A settled service changes only through a person, or through an event of its cluster. Both are reported: by the number of
its changes, and by its cluster (`deployments.reconcile.schedule`).
"""

from dataclasses import dataclass
from datetime import timedelta

from deployments.domain.phases import ServicePhase
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState
from integrations.clusters.base import Observed, ObservedRevision

UNSETTLED = -1
"""Instead of a number of changes: the service is not settled."""
TOUCHED = -2
"""The same: since the last tick, its cluster or its model's alias reported an event."""
RESYNC_EVERY = timedelta(seconds=60)
"""Least resync interval of a settled service, where its cluster reports events: at rest a service costs its worker less
than a thousandth of a core.
"""


@dataclass(frozen=True, slots=True)
class TickResult:
    """The observation and result of one reconcile tick.

    Attributes:
        seen: None where the cluster could not be read.
        is_confirmed: the cluster is in the desired state after the tick.
        is_waiting: the service waits for something, by itself or for its rollout.
        is_unsettled: a participant of the reconciler has something to do at the next tick.
    """

    phase: ServicePhase
    state: ServiceState
    seen: Observed | None
    is_confirmed: bool
    is_waiting: bool
    is_unsettled: bool


def is_settled(found: TickResult) -> bool:
    """Return whether the service is settled."""
    if found.seen is None or not found.is_confirmed or found.is_waiting or found.is_unsettled:
        return False
    running = [revision for revision in found.state.revisions if revision.stopped_at is None]
    if any(revision.role is not Role.STABLE for revision in running):
        return False  # it ends at that time
    if found.phase is ServicePhase.STOPPED:
        return True
    return found.phase is ServicePhase.READY and all(_stays(each, found.seen.revision(each.name)) for each in running)


def _stays(revision: RevisionState, observed: ObservedRevision | None) -> bool:
    """Return whether as many replicas run as desired, and only the cluster changes their number."""
    if observed is None or observed.ready_replicas < revision.replicas or not _companions_stay(revision, observed):
        return False
    if revision.is_asleep:
        return observed.woken_at is None
    if revision.own_scaling is not None:
        return False  # its load in the pool is looked at
    if not revision.scaling.is_automatic:
        return True
    # Replicas that a rollout left above the least are removed over time.
    is_at_least = revision.replicas <= revision.scaling.min_replicas
    return is_at_least and observed.scaling is not None and not observed.scaling.problem


def _companions_stay(revision: RevisionState, observed: ObservedRevision) -> bool:
    for kind, its in revision.companions.items():
        seen, wanted = observed.companions.get(kind), revision.companion_replicas(kind)
        if (0 if seen is None else seen.ready_replicas) < wanted or wanted > its.min_replicas:
            return False
    return True
