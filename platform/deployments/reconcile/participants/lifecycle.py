"""Service lifecycle as a participant: a service comes alive, old revisions stop, restarts become events, its phase."""

from deployments.domain.phases import ServicePhase
from deployments.domain.service_state.service_lifecycle import comes_alive, retire, standing, with_refusal
from deployments.reconcile import restarts
from deployments.reconcile.participants.evidence import EVIDENCE
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


def describe(change: Change, turn: Turn) -> None:
    """Record the service's phase and its reason, once all participants have recorded."""
    service = change.service
    problem = turn.problem or turn.found(EVIDENCE).problem
    if turn.problem and service.seen_at:
        problem = f"{problem} (last seen {service.seen_at:%Y-%m-%d %H:%M:%S} UTC)"
    rollout = None if change.rollout is None else change.rollout_state(change.rollout).reason
    before = ServicePhase(change.service.phase)
    now = with_refusal(standing(change.state(), before, turn.seen, rollout, problem), change.service.refusal)
    change.service.phase, change.service.reason = now.phase, now.reason
    change.service.standing = now.waits_for or ""
    if now.phase is ServicePhase.DEGRADED and before is not ServicePhase.DEGRADED:
        change.event(Kind.SERVICE_DEGRADED, now.reason, by_itself=True)
    if before is ServicePhase.DEGRADED and now.phase is not ServicePhase.DEGRADED:
        recovered = f"service {change.service} has recovered: {now.reason}"
        change.event(Kind.SERVICE_READY, recovered, by_itself=True)
