"""Copies of hot models: sets how many replicas of a pool answer for each model, in the pool's own turns.

A pool's replicas report all their models, so that nothing is read for the services in it. Only the local cluster has
copies. Where counters cannot be read the numbers stay.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from clusters.models import Cluster
from common.errors import Unavailable
from deployments.domain.autoscaling.load_window import WINDOW_S
from deployments.domain.autoscaling.model_copies import copies_json, copies_of, decide, stored_copies
from deployments.domain.service_file.clusters import LOCAL
from deployments.models import Revision
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from integrations.clusters.base import ReplicaPhase, Sample


@dataclass(frozen=True, slots=True)
class PoolLoad:
    """The counters of a pool's ready replicas; None where they are not read in this turn."""

    samples: Sequence[Sample] | None
    window: timedelta


class ModelCopies(Participant[PoolLoad]):
    """Sets the copies of a pool's models."""

    def collect(self, turn: Turn) -> PoolLoad:
        """Return the counters of a local pool's replicas, some seconds after those of before."""
        window = turn.outside.scale_down_window
        if turn.seen is None or not any(_is_due(turn.read, row) for row in turn.read.revisions):
            return PoolLoad(None, window)
        if not Cluster.objects.filter(pk=turn.service.cluster_id, kind=LOCAL).exists():
            return PoolLoad(None, window)
        serving = {
            replica.name
            for revision in turn.seen.revisions
            for replica in revision.replicas
            if replica.phase is ReplicaPhase.READY
        }
        try:
            return PoolLoad([each for each in turn.samples() if each.source in serving], window)
        except Unavailable:
            return PoolLoad(None, window)

    def record(self, change: Change, found: PoolLoad) -> None:
        """Record the copies of each running revision of a pool."""
        if found.samples is None or change.service.stopped:
            return
        for row in change.revisions:
            pool = change.revision_state(row).model_pool
            if pool is None or not _is_due(change, row):
                continue
            samples = [each for each in found.samples if each.revision == row.name]
            budget_bytes, before = pool.memory_budget_bytes, stored_copies(row.load)
            after = decide(before, samples, budget_bytes, window=found.window, now=change.now)
            row.load = {**row.load, "copies": copies_json(after)}
            # Only other copies are a change: the cluster's desired state has those.
            Revision.objects.filter(pk=row.pk).update(load=row.load)
            change.is_changed |= after.copies != before.copies

    def unsettled(self, change: Change) -> bool:
        """Return whether the load of models may give some of them copies, as in a local pool of several replicas."""
        return not change.service.stopped and any(
            "copies" in row.load and _may(change, row) for row in change.revisions
        )


MODEL_COPIES = ModelCopies()


def _may(change: Change, row: Revision) -> bool:
    """Return whether a pool's revision has replicas for copies, or copies to lose."""
    is_pool = row.stopped_at is None and change.revision_state(row).model_pool is not None
    return is_pool and (row.replicas > 1 or bool(copies_of(row.load)))


def _is_due(change: Change, row: Revision) -> bool:
    before = row.load.get("copies", {}).get("counted_at", 0.0)
    return _may(change, row) and not 0 <= change.now.timestamp() - before < WINDOW_S
