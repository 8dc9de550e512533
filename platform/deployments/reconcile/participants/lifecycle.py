"""Service lifecycle as a participant: the service comes alive, old revisions stop, restarts become events."""

from deployments.domain.service_state.service_lifecycle import comes_alive, retire
from deployments.reconcile import restarts
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from events.domain.kinds import Kind
from integrations.clusters.base import Observed


class Lifecycle(Participant[Observed | None]):
    """Records what follows from the cluster's observation."""

    def collect(self, turn: Turn) -> Observed | None:
        """Return the observation."""
        return turn.seen

    def record(self, change: Change, found: Observed | None) -> None:
        """Record the observation and what follows from it."""
        if found is None:
            return
        service = change.service
        if found.generation > service.generation:
            # The database is older than the cluster (restored from a copy): a lower number would be ignored for ever.
            service.generation = found.generation + 1
        if comes_alive(change.state(), found):
            service.live_at = change.now
            ready = f"service {service} has its first ready replica and gets its requests now"
            change.event(Kind.SERVICE_READY, ready)
        change.put_revisions(retire(change.state(), found, change.now).revisions)
        restarts.note_restarts(change, found)
        restarts.note_failures(change, found)
        restarts.note_left_out(change)
        service.observed = restarts.summary(found)
        service.seen_at = change.now


LIFECYCLE = Lifecycle()
