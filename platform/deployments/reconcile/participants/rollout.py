"""Rollout machine as a participant: advances the rollout in progress by what was observed and found.

The machine itself is pure (`deployments.domain.rollout`). This module gives it the observation of the turn, with the
evidence of the step, the approvals and the answers of webhooks, and records its new state.
"""

from datetime import datetime

from deployments.domain.autoscaling import rollout_capacity
from deployments.domain.phases import Phase
from deployments.domain.rollout import CanarySeen, Observation, RolloutState, advance, pass_over
from deployments.domain.rollout.approvals import Tally
from deployments.domain.service_state.desired import RevisionState
from deployments.models import Approval, Rollout
from deployments.reconcile import restarts
from deployments.reconcile.participants.evidence import EVIDENCE
from deployments.reconcile.participants.gates import questions_of, questions_open, questions_pass_over
from deployments.reconcile.participants.surge import shares_of
from deployments.reconcile.service_change import Change
from deployments.reconcile.service_counters import expect_end, note_turn
from deployments.reconcile.turn import Participant, Turn
from deployments.selectors import approval_tally
from integrations.clusters.base import CompanionKind, Observed, ObservedRevision


class RolloutMachine(Participant[Turn]):
    """Advances the rollout in progress."""

    def collect(self, turn: Turn) -> Turn:
        """Return the turn itself: the machine decides by what the others found."""
        return turn

    def record(self, change: Change, found: Turn) -> None:
        """Record the rollout's new state, and what it waits for."""
        row, seen, now = change.rollout, found.seen, change.now
        if row is None:
            return
        expect_end(row.pk, change.service.namespace, change.service.name)
        note_turn(change.service, now)
        state = change.rollout_state(row)
        if seen is not None and found.unseen:
            questions_pass_over(rollout=row, unseen=found.unseen)
        observation = _observation(change, row, state, found)
        if seen is not None:
            state = pass_over(state, found.unseen)
        after = advance(state, observation, now)
        if state.asks_for_approval and after.phase not in (state.phase, Phase.DEGRADED, Phase.ABORTED):
            _use(observation.approvals, now)
        change.move(row, after)
        questions_open(rollout=row, state=after, now=now)

    def unsettled(self, change: Change) -> bool:
        """Return whether a rollout is in progress."""
        return change.rollout is not None


ROLLOUT = RolloutMachine()


def _observation(change: Change, row: Rollout, state: RolloutState, turn: Turn) -> Observation:
    evidence = turn.found(EVIDENCE)
    return Observation(
        canary=None if turn.seen is None else _canary(change, row, state, turn.seen),
        confirmed=turn.is_confirmed,
        gateway_message=change.service.refusal or _gateway_message(turn.seen),
        finding=evidence.finding,
        background=evidence.background,
        problem=turn.problem or evidence.problem,
        approvals=approval_tally(rollout=row, state=state, now=change.now),
        webhooks=questions_of(rollout=row, state=state, now=change.now),
    )


def _use(approvals: Tally | None, now: datetime) -> None:
    """Record which approvals let the rollout proceed."""
    used = [] if approvals is None else [approval.id for approval in approvals.counting]
    Approval.objects.filter(pk__in=used).update(used_at=now)


def _canary(change: Change, row: Rollout, state: RolloutState, seen: Observed) -> CanarySeen:
    stable, canary = (change.revision_state(each) for each in (row.from_revision, row.to_revision))
    stable = rollout_capacity.as_seen(stable, seen.revision(stable.name))
    observed = seen.revision(canary.name)
    least, full = (
        rollout_capacity.bounds_of_canary(stable, canary, state).least,
        rollout_capacity.at_full(stable, canary),
    )
    together = 0
    if not state.policy.surge:
        together = state.full_replicas or stable.replicas
        least = shares_of(state, together)[1]
    is_back = row.to_revision.created_at < row.started_at
    if is_back:
        # The way back does not wait for more replicas than must be: who goes it wants to be rid of what is live.
        least, full = canary.scaling.least, 0
    return CanarySeen(
        replicas_wanted=least,
        replicas_ready=0 if observed is None else observed.ready_replicas,
        restarts={} if observed is None else {replica.name: replica.restarts for replica in observed.replicas},
        message="" if observed is None else observed.message or _complaint(observed),
        replicas_at_full=full,
        shared_replicas=together,
        companions={kind: _companion(stable, canary, kind, observed, is_back=is_back) for kind in canary.companions},
        refusal="" if observed is None else restarts.refusal(observed),
    )


def _companion(
    stable: RevisionState,
    canary: RevisionState,
    kind: CompanionKind,
    observed: ObservedRevision | None,
    *,
    is_back: bool,
) -> CanarySeen:
    its, seen = canary.companions[kind], None if observed is None else observed.companions.get(kind)
    return CanarySeen(
        replicas_wanted=its.min_replicas if is_back else canary.companion_replicas(kind),
        replicas_ready=0 if seen is None else seen.ready_replicas,
        restarts={} if seen is None else {replica.name: replica.restarts for replica in seen.replicas},
        message="" if seen is None else seen.message,
        replicas_at_full=0 if is_back else rollout_capacity.companions_at_full(stable, canary, kind),
    )


def _complaint(observed: ObservedRevision) -> str:
    own = next((replica.message for replica in observed.replicas if replica.message), "")
    return own or observed.companion_message


def _gateway_message(seen: Observed | None) -> str:
    if seen is None:
        return ""
    return seen.message or next((revision.message for revision in seen.revisions if revision.message), "")
