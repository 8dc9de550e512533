"""Whether anything of a service goes on, so that sweeps have to turn to it. Pure.

A service that is settled changes only where somebody changes it, or where something happens to what runs of it. Both
are told: by the number of its changes, and by its cluster (`deployments.reconcile.schedule`).
"""

from dataclasses import dataclass

from deployments.domain.phases import ServicePhase
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState
from integrations.clusters.base import Observed, ObservedRevision

UNSETTLED = -1
"""In the place of a number of changes: something goes on."""
TOUCHED = -2
"""The same: since the service was last turned to, its cluster or its model's alias said that something happened."""


@dataclass(frozen=True, slots=True)
class Turn:
    """What a turn of the reconciler found and recorded.

    Attributes:
        seen: None where the cluster could not be read.
        is_confirmed: the cluster does exactly what is desired after the turn.
        is_waiting: the service waits for something, by itself or for its rollout.
        is_tapped: requests are recorded, or some that were are not taken yet.
    """

    phase: ServicePhase
    state: ServiceState
    seen: Observed | None
    is_confirmed: bool
    is_waiting: bool
    is_rolling: bool
    is_tapped: bool


def is_settled(turn: Turn) -> bool:
    """Return whether nothing of the service goes on."""
    if turn.seen is None or not turn.is_confirmed or turn.is_waiting or turn.is_rolling or turn.is_tapped:
        return False
    running = [revision for revision in turn.state.revisions if revision.stopped_at is None]
    if any(revision.role is not Role.STABLE for revision in running):
        return False  # it ends when its time has come
    if turn.phase is ServicePhase.STOPPED:
        return True
    return turn.phase is ServicePhase.READY and all(_stays(each, turn.seen.revision(each.name)) for each in running)


def _stays(revision: RevisionState, there: ObservedRevision | None) -> bool:
    """Return whether as many replicas run as are wanted, and nobody but the cluster chooses how many."""
    if there is None or there.ready_replicas < revision.replicas or not _transformers_stay(revision, there):
        return False
    if not revision.scaling.is_automatic:
        return True
    # What a rollout left above the least comes down with time.
    is_at_least = revision.replicas <= revision.scaling.min_replicas
    return is_at_least and there.scaling is not None and not there.scaling.problem


def _transformers_stay(revision: RevisionState, there: ObservedRevision) -> bool:
    its = revision.transformer
    if its is None:
        return True
    ready = 0 if there.transformer is None else there.transformer.ready_replicas
    return ready >= revision.transformer_replicas and revision.transformer_replicas <= its.min_replicas
