"""Rollout tick: the transition of a rollout by one observation. Pure."""

from dataclasses import replace
from datetime import datetime, timedelta
from math import ceil

from common import durations
from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.phases import Code, Phase, Reason
from deployments.domain.policy import OnDeadline, OnInconclusive, Then, When, match_text
from deployments.domain.rollout.state import CanarySeen, Observation, RolloutState
from deployments.domain.rollout.traffic_split import Portion
from deployments.domain.rollout.transitions import because, finish, next_step
from deployments.domain.rollout.webhooks import Ruling, rule

RESTART_LIMIT = 3
"""Restarts of one replica within an attempt that are a crash loop."""


def advance(state: RolloutState, seen: Observation, now: datetime) -> RolloutState:  # noqa: PLR0911 - guards in order
    """Return the rollout after one tick; an equal one if nothing changed."""
    if state.phase.is_finished:
        return state
    if seen.canary is None:
        return because(state, Code.CLUSTER_UNAVAILABLE, f"the cluster cannot be read, so nothing moves: {seen.problem}")
    if state.restart_baseline is None:
        state = replace(state, restart_baseline=dict(seen.canary.all_restarts))
    if seen.finding is not None and state.step is not None and state.phase is not Phase.PENDING:
        state = replace(state, verdict=seen.finding.verdict)
    if failure := _failure(state, seen, seen.canary):
        return finish(state, Phase.DEGRADED, failure.code, failure.message, now)
    if _is_late(state, now):
        return _past_deadline(state, now)
    if not seen.canary.is_ready:
        return _wait_for_canary(state, seen.canary, now)
    state = replace(state, waiting_since=None)
    if state.phase is Phase.PENDING:
        return _leave_pending(state, seen, now)
    if kept := _kept_by_webhooks(state, seen, When.BEFORE, now):
        return kept
    if not state.has_its_portion:
        return _ask(state, seen)
    if not seen.confirmed:
        return _wait_for_gateway(state, seen)
    state = replace(state, confirmed_at=state.confirmed_at or now)
    if state.phase is Phase.PAUSED:
        return _stay_paused(state, seen, now)
    return _at_step(state, seen, now)


def _failure(state: RolloutState, seen: Observation, canary: CanarySeen) -> Reason | None:
    """Return the clear failure of the canary: by an analysis, by a permanent refusal, by its restarts."""
    if state.step is not None and state.phase is not Phase.PENDING:
        for finding, what in ((seen.finding, "analysis"), (seen.background, "analysis in the background")):
            if finding is not None and finding.verdict is Verdict.FAILED:
                return Reason(Code.ANALYSIS_FAILED, f"the {what} failed at {state.where}: {finding.message}")
    if canary.refusal and not canary.serves:
        message = f"the {state.policy.subject} can never start as it is: {canary.refusal}"
        return Reason(Code.CANARY_CRASH_LOOPING, message)  # the previous release cannot read a new code
    if restarts := _crash_loop(state, canary):
        who = f"a replica of the {state.policy.subject}"
        message = f"{who} ended {restarts} times since the rollout began{_because_of(canary)}"
        return Reason(Code.CANARY_CRASH_LOOPING, message)
    return None


def _is_late(state: RolloutState, now: datetime) -> bool:
    """Return whether the rollout's deadline passed, and has a consequence.

    Once all traffic is to move it is as good as over; a rollout that has not begun cannot be paused.
    """
    if state.deadline_at is None or now < state.deadline_at or state.step is None:
        return False
    return state.phase is not Phase.PENDING or state.policy.on_deadline is OnDeadline.ABORT


def _past_deadline(state: RolloutState, now: datetime) -> RolloutState:
    """Return the rollout after its deadline: ended, or paused once; one that was paused already continues to wait."""
    length = "" if state.policy.deadline is None else f" of {durations.render(state.policy.deadline)}"
    message = f"the rollout's deadline{length} passed at {state.where}"
    state = replace(state, deadline_at=None)
    if state.policy.on_deadline is OnDeadline.ABORT:
        return finish(state, Phase.ABORTED, Code.DEADLINE_EXCEEDED, message, now)
    if state.phase is Phase.PAUSED:
        return state
    message += "; approve or reject it" if state.approval is not None else "; promote or abort it"
    return because(replace(state, phase=Phase.PAUSED), Code.PAUSED_BY_DEADLINE, message)


def _leave_pending(state: RolloutState, seen: Observation, now: datetime) -> RolloutState:
    if not seen.confirmed:
        return _wait_for_gateway(state, seen)
    if state.approval is not None and not _is_approved(seen):
        return _await_approval(state, seen, "its replicas are ready, and no request moves before")
    if kept := _kept_by_webhooks(state, seen, When.BEFORE, now):
        return kept
    return _ask(replace(state, phase=Phase.PROGRESSING), seen)


def _ask(state: RolloutState, seen: Observation) -> RolloutState:
    """Return the rollout with its step's portion set, unless the gateway still works on the one before."""
    if not seen.confirmed:
        return _wait_for_gateway(state, seen)
    if seen.canary is not None and (lacking := seen.canary.lacks_for(state.wanted)):
        return because(state, Code.CANARY_NOT_READY, f"{state.where} waits: {lacking}")
    state = replace(state, portion=state.wanted, confirmed_at=None)
    code = Code.PROMOTING if state.step is None else Code.WAITING_FOR_GATEWAY
    message = f"the gateway is to {state.portion.asked} to the {state.policy.subject}"
    if state.is_previewing:
        message = "the gateway is to send what comes to the preview address to the canary"
    return because(state, code, message)


def _wait_for_gateway(state: RolloutState, seen: Observation) -> RolloutState:
    share = f"{state.portion.done} to the {state.policy.subject}" if state.portion else "sends all traffic to stable"
    if state.is_previewing:
        share = "sends what comes to the preview address to the canary, and all else to stable"
    why = f" ({seen.gateway_message})" if seen.gateway_message else ""
    return because(state, Code.WAITING_FOR_GATEWAY, f"the gateway has yet to confirm that it {share}{why}")


def _at_step(state: RolloutState, seen: Observation, now: datetime) -> RolloutState:  # noqa: PLR0911 - guards in order
    step = state.step
    if step is None:
        if state.policy.then is Then.END:
            message = f"the shadow passed its {len(state.policy.steps)} steps and ends; stable goes on serving clients"
            return finish(state, Phase.HEALTHY, Code.SHADOW_ENDED, message, now)
        message = "the gateway sends all traffic to the new revision; it is the stable one now"
        return finish(state, Phase.HEALTHY, Code.PROMOTED, message, now)
    finding = seen.finding
    if step.gate is not None:
        if finding is None:
            why = seen.problem or "the first counts of this step are being read"
            return because(state, Code.METRICS_UNAVAILABLE, f"{state.where} holds until there are metrics: {why}")
        if finding.verdict is Verdict.INCONCLUSIVE:
            return _on_inconclusive(state, finding, now)
        if finding.verdict is Verdict.RUNNING:
            code = Code.ANALYSIS_RUNNING if finding.canary_requests else Code.NO_TRAFFIC
            todo = _what_to_send(state) if code is Code.NO_TRAFFIC else ""
            return because(state, code, f"{state.where}: {finding.message}{todo}")
    evidence = finding.message if finding is not None else "no analysis at this step"
    held = now - (state.confirmed_at or now)
    if held < step.hold:
        return because(state, Code.HOLDING, f"{state.where} is held for another {_left(step.hold - held)}; {evidence}")
    if kept := _kept_by_webhooks(state, seen, When.AFTER, now):
        return kept
    if state.pauses:
        state = replace(state, phase=Phase.PAUSED)
        if state.approval is not None:
            return _await_approval(state, seen, evidence)
        message = f"{state.where} waits for somebody to promote or abort it; {evidence}"
        return because(state, Code.PAUSED_BY_STEP, message)
    return _go_on(state, seen, now)


def _left(left: timedelta) -> str:
    """Return the rest of a hold, of more than ten minutes in minutes: what is shown is written each time it changes."""
    exact_s = left.total_seconds()
    minutes = ceil(exact_s / 60)
    return durations.render(timedelta(minutes=minutes) if minutes > 10 else timedelta(seconds=max(1, round(exact_s))))


def _go_on(state: RolloutState, seen: Observation, now: datetime) -> RolloutState:
    after = next_step(state)
    if kept := _kept_by_webhooks(after, seen, When.BEFORE, now):
        return kept
    if after.step is None and after.has_its_portion:
        # A last step of 100 % is all traffic already, and the gateway confirmed it.
        return _at_step(after, seen, now)
    return _ask(after, seen)


def _what_to_send(state: RolloutState) -> str:
    """Return what to do where no request reaches the canary; empty where clients' traffic will."""
    if state.is_previewing:
        return "; send requests to the preview address"
    if state.portion.match and not state.portion.weight:
        return f"; send requests with {match_text(state.portion.match)}"
    return ""


def _on_inconclusive(state: RolloutState, finding: Finding, now: datetime) -> RolloutState:
    message = f"the analysis of {state.where} is {finding.message}"
    if state.policy.on_inconclusive is OnInconclusive.ABORT:
        return finish(state, Phase.ABORTED, Code.ANALYSIS_INCONCLUSIVE, message, now)
    message += "; approve or reject it" if state.approval is not None else "; promote or abort it"
    return because(replace(state, phase=Phase.PAUSED), Code.PAUSED_INCONCLUSIVE, message)


def _stay_paused(state: RolloutState, seen: Observation, now: datetime) -> RolloutState:
    """Return the paused rollout with the present evidence, for the person who decides.

    Enough approvals of a step are its promotion: their authors saw the evidence. An inconclusive or late reason stays
    as it was; a reason about the canary or the gateway gives way to the pause.
    """
    if any(asked.is_overdue for asked in seen.webhooks):
        return _kept_by_webhooks(state, seen, When.AFTER, now) or state
    if state.approval is not None:
        if _is_approved(seen):
            return _go_on(state, seen, now)
        return _await_approval(
            state, seen, "no analysis at this step" if seen.finding is None else seen.finding.message
        )
    is_late = state.policy.deadline is not None and state.deadline_at is None
    otherwise = Code.PAUSED_BY_DEADLINE if is_late else Code.PAUSED_INCONCLUSIVE
    code = Code.PAUSED_BY_STEP if state.pauses else otherwise
    if state.reason.code in (Code.PAUSED_INCONCLUSIVE, Code.PAUSED_BY_DEADLINE):
        return state
    if state.reason.code is code and seen.finding is None:
        return state
    evidence = f"; {seen.finding.message}" if seen.finding is not None else ""
    return because(state, code, f"{state.where} waits for somebody to promote or abort it{evidence}")


def _kept_by_webhooks(state: RolloutState, seen: Observation, when: When, now: datetime) -> RolloutState | None:
    """Return the rollout held or ended by its step's webhooks; None where all of them answered go."""
    if state.step is None:
        return None
    ruling, said = rule(state.step, state.step_index, when, seen.webhooks)
    if ruling is Ruling.GO:
        return None
    if ruling is Ruling.NO:
        return finish(state, Phase.DEGRADED, Code.WEBHOOK_REFUSED, f"refused at {state.where}: {said}", now)
    if ruling is Ruling.WAIT and state.phase is not Phase.PAUSED:
        return because(state, Code.WAITING_FOR_WEBHOOK, f"{state.where} waits: {said}")
    if ruling is Ruling.OVERDUE and state.policy.on_inconclusive is OnInconclusive.ABORT:
        return finish(state, Phase.ABORTED, Code.WEBHOOK_UNDECIDED, f"undecided at {state.where}: {said}", now)
    how = "is undecided at the deadline of its webhook"
    if ruling is Ruling.WAIT:
        how = "was paused before its webhook answered"
    message = f"{state.where} {how}; promote or abort it; {said}"
    return because(replace(state, phase=Phase.PAUSED), Code.PAUSED_BY_WEBHOOK, message)


def _is_approved(seen: Observation) -> bool:
    return seen.approvals is not None and seen.approvals.is_complete


def _await_approval(state: RolloutState, seen: Observation, evidence: str) -> RolloutState:
    where = "the rollout" if state.phase is Phase.PENDING else state.where
    needed = "an approval" if seen.approvals is None else seen.approvals.message
    return because(state, Code.AWAITING_APPROVAL, f"{where} waits for {needed}; {evidence}")


def _wait_for_canary(state: RolloutState, canary: CanarySeen, now: datetime) -> RolloutState:
    """Return the rollout while replicas are missing; without a single ready one, stable gets all traffic meanwhile."""
    since = state.waiting_since or now
    missing, what = canary, f"the {state.policy.subject}"
    late = next(((kind, its) for kind, its in canary.companions.items() if not its.is_ready), None)
    if late is not None and 0 < canary.replicas_wanted <= canary.replicas_ready:
        missing, what = late[1], f"the {state.policy.subject}'s {late[0]}"
    count = f"{missing.replicas_ready} of {missing.replicas_wanted} replicas"
    ready = f"{count} of {what} are ready{_because_of(missing)}"
    if now - since >= state.policy.progress_deadline:
        message = f"{ready} after {durations.render(state.policy.progress_deadline)} of waiting, the progress deadline"
        return finish(state, Phase.DEGRADED, Code.PROGRESS_DEADLINE_EXCEEDED, message, now)
    state = replace(state, waiting_since=since)
    if state.phase is Phase.PENDING:
        return because(state, Code.CANARY_STARTING, ready)
    if not canary.serves and state.portion:
        state = replace(state, portion=Portion(), confirmed_at=None)
    return because(state, Code.CANARY_NOT_READY, f"{state.where} waits: {ready}")


def _crash_loop(state: RolloutState, canary: CanarySeen) -> int:
    """Return the restarts of the worst replica in this attempt if they are a crash loop, else 0."""
    before = state.restart_baseline or {}
    worst = max((count - before.get(name, 0) for name, count in canary.all_restarts.items()), default=0)
    return worst if worst >= RESTART_LIMIT else 0


def _because_of(canary: CanarySeen) -> str:
    return f" ({canary.message})" if canary.message else ""
