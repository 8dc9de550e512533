"""Rollout commands: transitions by people, by newer rollouts, and after downtime. Pure."""

from dataclasses import replace
from datetime import datetime, timedelta

from common.errors import InvalidTransition
from deployments.domain.phases import Code, Phase, Reason
from deployments.domain.policy import Policy, Then
from deployments.domain.rollout.state import RolloutState
from deployments.domain.rollout.transitions import because, finish, next_step


def start(policy: Policy, now: datetime) -> RolloutState:
    """Return a new rollout, whose canary has yet to start."""
    reason = Reason(Code.CANARY_STARTING, f"the {policy.subject}'s replicas are being started")
    return RolloutState(
        policy,
        Phase.PENDING,
        reason,
        attempt_started_at=now,
        restart_baseline={},
        deadline_at=None if policy.deadline is None else now + policy.deadline,
    )


def promote(state: RolloutState) -> RolloutState:
    """Return the rollout past its pause.

    Raises:
        InvalidTransition: it is not paused, or waits for more than one person's approval.
    """
    if state.approval is not None:
        raise InvalidTransition(
            f"this rollout goes on when it is approved, not when it is promoted ({state.reason.message}); "
            "approve it with `fairlead rollouts approve`"
        )
    if state.phase is not Phase.PAUSED:
        raise InvalidTransition(
            f"only a paused rollout can be promoted; this one is {state.phase}: {state.reason.message}"
        )
    return next_step(state)


def pass_webhooks(state: RolloutState) -> RolloutState:
    """Return a rollout, paused because a webhook of its step stayed undecided, continued at the same step.

    Other conditions of the step, such as approvals, still apply.
    """
    after = replace(state, phase=Phase.PROGRESSING)
    return because(after, Code.PROMOTING, f"{state.where} goes on without the answer of its webhook")


def abort(state: RolloutState, now: datetime, by: str, why: str = "") -> RolloutState:
    """Return the rollout aborted by a person; all traffic goes to stable.

    Raises:
        InvalidTransition: it is over.
    """
    if state.phase.is_finished:
        is_live = state.phase is Phase.HEALTHY and state.policy.then is not Then.END
        way_back = "; `fairlead rollouts undo` brings the revision before it back" if is_live else ""
        raise InvalidTransition(
            f"this rollout is over, so it cannot be aborted; it is {state.phase}: {state.reason.message}{way_back}"
        )
    because_of = f": {why}" if why else ""
    return finish(state, Phase.ABORTED, Code.ABORTED, f"aborted by {by} at {state.where}{because_of}", now)


def reject(state: RolloutState, now: datetime, by: str, why: str) -> RolloutState:
    """Return the rollout aborted by a person whose approval it waits for.

    Raises:
        InvalidTransition: it waits for no approval.
    """
    if not state.asks_for_approval:
        raise InvalidTransition(
            f"this rollout waits for no approval, so it cannot be rejected; abort it instead; it is {state.phase}: "
            f"{state.reason.message}"
        )
    return finish(state, Phase.ABORTED, Code.REJECTED, f"rejected by {by} at {_at(state)}: {why}", now)


def _at(state: RolloutState) -> str:
    return "its beginning" if state.phase is Phase.PENDING else state.where


def supersede(state: RolloutState, now: datetime, by: str) -> RolloutState:
    """Return the rollout superseded by `by`; one that is over stays as it is."""
    if state.phase.is_finished:
        return state
    return finish(state, Phase.ABORTED, Code.SUPERSEDED, f"superseded by {by} at {state.where}", now)


def retry(state: RolloutState, now: datetime) -> RolloutState:
    """Return the rollout restarted at its first step.

    Raises:
        InvalidTransition: it is neither degraded nor aborted.
    """
    if state.phase not in (Phase.DEGRADED, Phase.ABORTED):
        raise InvalidTransition(
            f"only a degraded or aborted rollout can be retried; this one is {state.phase}: {state.reason.message}"
        )
    again = replace(
        start(state.policy, now), attempt=state.attempt + 1, restart_baseline=None, full_replicas=state.full_replicas
    )
    return because(again, Code.CANARY_STARTING, f"attempt {again.attempt}: {again.reason.message}")


def pass_over(state: RolloutState, unseen: timedelta) -> RolloutState:
    """Return the rollout with its deadlines shifted by the time in which the reconciler saw nothing.

    A control plane that was off overnight must not find every deadline passed in the morning.
    """
    return replace(
        state,
        confirmed_at=state.confirmed_at and state.confirmed_at + unseen,
        waiting_since=state.waiting_since and state.waiting_since + unseen,
        deadline_at=state.deadline_at and state.deadline_at + unseen,
    )
