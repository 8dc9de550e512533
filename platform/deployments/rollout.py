"""The rollout machine. Pure: the reconciler brings the clock and what was seen, and records what comes out.

            start, or retry of Degraded and Aborted
                             │
                          Pending ───────────────────────────────────────────┐
                             │ canary ready, gateway sends all to stable     │ canary crash-loops, or is not
                             ▼                                               │ ready for progressDeadline;
     ┌──────────► Progressing at step i ─────────────────────────────────────┤ the analysis failed
     │ i + 1        weight asked for; the gateway confirms; hold; analysis   │
     │                  │    │         │                                     ├──────────────────────► Degraded
     │ Successful, held │    │         │ Inconclusive                        │
     ├──────────────────┘    │         ├──────────────────► Aborted          │
     │                pause: │         │ (onInconclusive: abort)             │
     │ promote               ▼         ▼ (onInconclusive: pause)             │
     └───────────────────── Paused ──────────────────────────────────────────┘
                             │
          after the last step: Progressing at 100 % ── the gateway confirms ──► Healthy

    A shadow goes the same way with shares of requests that are copied to it in the place of weights: clients get all
    their answers from stable. What follows its last step is the policy's to say:

          then: pause     Paused ── promote ──► Progressing at 100 % ── the gateway confirms ──► Healthy
          then: promote                         Progressing at 100 % ── the gateway confirms ──► Healthy
          then: end       nothing is copied any more, stable stays what it is ─────────────────► Healthy

    Blue/green goes the same way with one step, in which the canary gets what comes to the preview address and clients
    get all their answers from stable; then all traffic moves in one update of the gateway:

          Progressing at step 1, weight 0 and preview ── Successful, held, promoted ──► Progressing at 100 %

    abort, and a newer rollout (Superseded): Pending, Progressing, Paused ──► Aborted

Degraded and Aborted want weight 0 for the canary at once. A weight above 0 is only ever wanted while the canary is
ready, and it rises only once the gateway confirmed the weight before; a canary that stops being ready gives its
traffic to stable until it is ready again. An observation without evidence (metrics or cluster cannot be read) moves
nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from common import durations
from common.errors import InvalidTransition
from deployments.analysis.verdict import Finding, Verdict
from deployments.phases import Code, Phase, Reason
from deployments.policy import OnInconclusive, Policy, Step, Strategy, Then

RESTART_LIMIT = 3
"""So many restarts of one replica within an attempt are a crash loop."""


@dataclass(frozen=True, slots=True)
class RolloutState:
    """A rollout as recorded.

    Attributes:
        step_index: the step it is at; the number of steps once all traffic is to move.
        weight: percent of requests the canary should get now, or the shadow a copy of (`is_mirroring`).
        confirmed_at: when the gateway first sent the present weight; hold counts from there.
        waiting_since: since when the canary has not been ready; None while it is.
        restart_baseline: restarts of each of the canary's replicas before this attempt; None until they were seen.
    """

    policy: Policy
    phase: Phase
    reason: Reason
    attempt_started_at: datetime
    attempt: int = 1
    step_index: int = 0
    weight: int = 0
    verdict: Verdict = Verdict.RUNNING
    confirmed_at: datetime | None = None
    waiting_since: datetime | None = None
    finished_at: datetime | None = None
    restart_baseline: Mapping[str, int] | None = None

    @property
    def step(self) -> Step | None:
        """Return the step it is at; None once all traffic is to move."""
        return self.policy.steps[self.step_index] if self.step_index < len(self.policy.steps) else None

    @property
    def is_mirroring(self) -> bool:
        """Return whether `weight` is a share of requests to copy; past a shadow's last step it is one of clients."""
        return self.policy.strategy is Strategy.SHADOW and self.step is not None

    @property
    def client_weight(self) -> int:
        """Return the percent of clients' requests the new revision should get now."""
        return 0 if self.is_mirroring else self.weight

    @property
    def mirror_percent(self) -> int:
        """Return the percent of clients' requests the new revision should get a copy of now."""
        return self.weight if self.is_mirroring else 0

    @property
    def is_previewing(self) -> bool:
        """Return whether it is tried on the preview address, while all clients are stable's."""
        return self.policy.strategy is Strategy.BLUE_GREEN and self.step is not None

    @property
    def has_its_weight(self) -> bool:
        """Return whether the weight of the present step was asked for."""
        return self.weight == _target(self)

    @property
    def pauses(self) -> bool:
        """Return whether the present step waits for a person at its end."""
        last = self.step_index == len(self.policy.steps) - 1
        return self.step is not None and (self.step.pause or (last and self.policy.then is Then.PAUSE))


@dataclass(frozen=True, slots=True)
class CanarySeen:
    """The canary as the cluster reports it.

    Attributes:
        restarts: of each replica, since the replica exists.
        message: why it is not ready; one sentence or empty.
    """

    replicas_wanted: int
    replicas_ready: int
    restarts: Mapping[str, int] = field(default_factory=dict)
    message: str = ""

    @property
    def is_ready(self) -> bool:
        """Return whether it has the replicas it should have, so that it may get more traffic."""
        return 0 < self.replicas_wanted <= self.replicas_ready


@dataclass(frozen=True, slots=True)
class Observation:
    """What one tick saw.

    Attributes:
        canary: None where the cluster could not be read; `problem` says why.
        confirmed: the gateway sends exactly the weights that were last asked for.
        gateway_message: why it does not; empty where it gave no reason.
        finding: of the present step's analysis; None before the step began and where metrics could not be read.
        problem: why something could not be read.
    """

    canary: CanarySeen | None
    confirmed: bool = False
    gateway_message: str = ""
    finding: Finding | None = None
    problem: str = ""


def start(policy: Policy, now: datetime) -> RolloutState:
    """Return a new rollout, whose canary has yet to start."""
    reason = Reason(Code.CANARY_STARTING, f"the {policy.subject}'s replicas are being started")
    return RolloutState(policy, Phase.PENDING, reason, attempt_started_at=now, restart_baseline={})


def advance(state: RolloutState, seen: Observation, now: datetime) -> RolloutState:  # noqa: PLR0911 - guards in order
    """Return the rollout after one tick; an equal one if nothing changed."""
    if state.phase.is_finished:
        return state
    if seen.canary is None:
        return _because(
            state, Code.CLUSTER_UNAVAILABLE, f"the cluster cannot be read, so nothing moves: {seen.problem}"
        )
    if state.restart_baseline is None:
        state = replace(state, restart_baseline=dict(seen.canary.restarts))
    if seen.finding is not None and state.step is not None and state.phase is not Phase.PENDING:
        state = replace(state, verdict=seen.finding.verdict)
        if seen.finding.verdict is Verdict.FAILED:
            message = f"the analysis failed at {_where(state)}: {seen.finding.message}"
            return _finish(state, Phase.DEGRADED, Code.ANALYSIS_FAILED, message, now)
    if restarts := _crash_loop(state, seen.canary):
        who = f"a replica of the {state.policy.subject}"
        message = f"{who} ended {restarts} times since the rollout began{_because_of(seen.canary)}"
        return _finish(state, Phase.DEGRADED, Code.CANARY_CRASH_LOOPING, message, now)
    if not seen.canary.is_ready:
        return _wait_for_canary(state, seen.canary, now)
    state = replace(state, waiting_since=None)
    if state.phase is Phase.PENDING:
        return _leave_pending(state, seen)
    if state.weight != _target(state):
        return _ask_for_weight(state, seen)
    if not seen.confirmed:
        return _wait_for_gateway(state, seen)
    state = replace(state, confirmed_at=state.confirmed_at or now)
    if state.phase is Phase.PAUSED:
        return _stay_paused(state, seen)
    return _at_step(state, seen, now)


def promote(state: RolloutState) -> RolloutState:
    """Return the rollout past its pause.

    Raises:
        InvalidTransition: it is not paused.
    """
    if state.phase is not Phase.PAUSED:
        raise InvalidTransition(
            f"only a paused rollout can be promoted; this one is {state.phase}: {state.reason.message}"
        )
    return _next_step(state)


def abort(state: RolloutState, now: datetime, by: str) -> RolloutState:
    """Return the rollout given up by a person; all traffic goes to stable.

    Raises:
        InvalidTransition: it is over.
    """
    if state.phase.is_finished:
        raise InvalidTransition(
            f"this rollout is over, so it cannot be aborted; it is {state.phase}: {state.reason.message}"
        )
    return _finish(state, Phase.ABORTED, Code.ABORTED, f"aborted by {by} at {_where(state)}", now)


def supersede(state: RolloutState, now: datetime, by: str) -> RolloutState:
    """Return the rollout given up for what `by` names; one that is over stays as it is."""
    if state.phase.is_finished:
        return state
    return _finish(state, Phase.ABORTED, Code.SUPERSEDED, f"superseded by {by} at {_where(state)}", now)


def retry(state: RolloutState, now: datetime) -> RolloutState:
    """Return the rollout begun again at its first step.

    Raises:
        InvalidTransition: it is neither degraded nor aborted.
    """
    if state.phase not in (Phase.DEGRADED, Phase.ABORTED):
        raise InvalidTransition(
            f"only a degraded or aborted rollout can be retried; this one is {state.phase}: {state.reason.message}"
        )
    again = replace(start(state.policy, now), attempt=state.attempt + 1, restart_baseline=None)
    return _because(again, Code.CANARY_STARTING, f"attempt {again.attempt}: {again.reason.message}")


def pass_over(state: RolloutState, unseen: timedelta) -> RolloutState:
    """Return the rollout as if the time in which nobody could look had not been.

    A control plane that was off overnight must not find every deadline passed in the morning.
    """
    return replace(
        state,
        confirmed_at=state.confirmed_at and state.confirmed_at + unseen,
        waiting_since=state.waiting_since and state.waiting_since + unseen,
    )


def _leave_pending(state: RolloutState, seen: Observation) -> RolloutState:
    if not seen.confirmed:
        return _wait_for_gateway(state, seen)
    return _ask_for_weight(replace(state, phase=Phase.PROGRESSING), seen)


def _ask_for_weight(state: RolloutState, seen: Observation) -> RolloutState:
    """Return the rollout asking for its step's weight, unless the gateway still works on the one before."""
    if not seen.confirmed:
        return _wait_for_gateway(state, seen)
    state = replace(state, weight=_target(state), confirmed_at=None)
    code = Code.PROMOTING if state.step is None else Code.WAITING_FOR_GATEWAY
    message = f"the gateway was asked to send {state.weight} % to the {state.policy.subject}"
    if state.is_mirroring:
        message = f"the gateway was asked to copy {state.weight} % of the requests to the shadow"
    if state.is_previewing:
        message = "the gateway was asked to send what comes to the preview address to the canary"
    return _because(state, code, message)


def _wait_for_gateway(state: RolloutState, seen: Observation) -> RolloutState:
    share = f"sends {state.weight} % to the {state.policy.subject}" if state.weight else "sends all traffic to stable"
    if state.mirror_percent:
        share = f"copies {state.weight} % of the requests to the shadow"
    if state.is_previewing:
        share = "sends what comes to the preview address to the canary, and all else to stable"
    why = f" ({seen.gateway_message})" if seen.gateway_message else ""
    return _because(state, Code.WAITING_FOR_GATEWAY, f"the gateway has yet to confirm that it {share}{why}")


def _at_step(state: RolloutState, seen: Observation, now: datetime) -> RolloutState:  # noqa: PLR0911 - guards in order
    step = state.step
    if step is None:
        if state.policy.then is Then.END:
            message = f"the shadow passed its {len(state.policy.steps)} steps and ends; stable goes on serving clients"
            return _finish(state, Phase.HEALTHY, Code.SHADOW_ENDED, message, now)
        message = "the gateway sends all traffic to the new revision; it is the stable one now"
        return _finish(state, Phase.HEALTHY, Code.PROMOTED, message, now)
    finding = seen.finding
    if step.gate is not None:
        if finding is None:
            why = seen.problem or "the first counts of this step are being read"
            return _because(state, Code.METRICS_UNAVAILABLE, f"{_where(state)} holds until there are metrics: {why}")
        if finding.verdict is Verdict.INCONCLUSIVE:
            return _on_inconclusive(state, finding, now)
        if finding.verdict is Verdict.RUNNING:
            code = Code.ANALYSIS_RUNNING if finding.canary_requests else Code.NO_TRAFFIC
            todo = "; send requests to the preview address" if state.is_previewing and code is Code.NO_TRAFFIC else ""
            return _because(state, code, f"{_where(state)}: {finding.message}{todo}")
    evidence = finding.message if finding is not None else "no analysis at this step"
    held = now - (state.confirmed_at or now)
    if held < step.hold:
        left = durations.render(timedelta(seconds=max(1, round((step.hold - held).total_seconds()))))
        return _because(state, Code.HOLDING, f"{_where(state)} is held for another {left}; {evidence}")
    if state.pauses:
        message = f"{_where(state)} waits for somebody to promote or abort it; {evidence}"
        return _because(replace(state, phase=Phase.PAUSED), Code.PAUSED_BY_STEP, message)
    after = _next_step(state)
    if after.weight == _target(after):
        # A last step of 100 % is all traffic already, and the gateway confirmed it.
        return _at_step(after, seen, now)
    return _ask_for_weight(after, seen)


def _next_step(state: RolloutState) -> RolloutState:
    """Return the rollout at its next step, whose weight the next observation of a ready canary will ask for."""
    after = replace(
        state,
        phase=Phase.PROGRESSING,
        step_index=state.step_index + 1,
        # What was copied is no weight of clients: past its last step a shadow has none until it is asked for.
        weight=0 if state.is_mirroring and state.step_index + 1 == len(state.policy.steps) else state.weight,
        verdict=Verdict.RUNNING,
        confirmed_at=None,
    )
    return _because(after, Code.PROMOTING, f"{_where(after)} is next")


def _on_inconclusive(state: RolloutState, finding: Finding, now: datetime) -> RolloutState:
    message = f"the analysis of {_where(state)} is {finding.message}"
    if state.policy.on_inconclusive is OnInconclusive.ABORT:
        return _finish(state, Phase.ABORTED, Code.ANALYSIS_INCONCLUSIVE, message, now)
    message += "; promote or abort it"
    return _because(replace(state, phase=Phase.PAUSED), Code.PAUSED_INCONCLUSIVE, message)


def _stay_paused(state: RolloutState, seen: Observation) -> RolloutState:
    """Return the paused rollout with the evidence of now, which who decides will want to see.

    What was inconclusive stays said as it was; a reason that told of the canary or the gateway gives way to the pause.
    """
    code = Code.PAUSED_BY_STEP if state.pauses else Code.PAUSED_INCONCLUSIVE
    if state.reason.code is Code.PAUSED_INCONCLUSIVE or (state.reason.code is code and seen.finding is None):
        return state
    evidence = f"; {seen.finding.message}" if seen.finding is not None else ""
    return _because(state, code, f"{_where(state)} waits for somebody to promote or abort it{evidence}")


def _wait_for_canary(state: RolloutState, canary: CanarySeen, now: datetime) -> RolloutState:
    """Return the rollout while replicas are missing; without a single ready one, stable gets all traffic meanwhile."""
    since = state.waiting_since or now
    count = f"{canary.replicas_ready} of {canary.replicas_wanted} replicas"
    ready = f"{count} of the {state.policy.subject} are ready{_because_of(canary)}"
    if now - since >= state.policy.progress_deadline:
        message = f"{ready}, {durations.render(state.policy.progress_deadline)} after they should have been"
        return _finish(state, Phase.DEGRADED, Code.PROGRESS_DEADLINE_EXCEEDED, message, now)
    state = replace(state, waiting_since=since)
    if state.phase is Phase.PENDING:
        return _because(state, Code.CANARY_STARTING, ready)
    if canary.replicas_ready == 0 and state.weight:
        state = replace(state, weight=0, confirmed_at=None)
    return _because(state, Code.CANARY_NOT_READY, f"{_where(state)} waits: {ready}")


def _crash_loop(state: RolloutState, canary: CanarySeen) -> int:
    """Return how often the worst replica was restarted in this attempt if that is a crash loop, else 0."""
    before = state.restart_baseline or {}
    worst = max((count - before.get(name, 0) for name, count in canary.restarts.items()), default=0)
    return worst if worst >= RESTART_LIMIT else 0


def _target(state: RolloutState) -> int:
    if state.step is not None:
        return 0 if state.is_previewing else state.step.weight
    return 0 if state.policy.then is Then.END else 100


def _finish(state: RolloutState, phase: Phase, code: Code, message: str, now: datetime) -> RolloutState:
    weight, verdict = 0, state.verdict
    if phase is Phase.HEALTHY:
        weight, verdict = _target(state), Verdict.SUCCESSFUL
    elif state.is_mirroring:
        message += "; it gets no copies any more, and clients never saw an answer of it"
    elif state.is_previewing:
        message += "; the preview address is closed, and all traffic stays on stable"
    else:
        message += "; all traffic goes to stable"
    if phase is Phase.DEGRADED:
        verdict = Verdict.FAILED
    state = replace(state, phase=phase, weight=weight, verdict=verdict, waiting_since=None, finished_at=now)
    return _because(state, code, message)


def _because(state: RolloutState, code: Code, message: str) -> RolloutState:
    return replace(state, reason=Reason(code, message))


def _where(state: RolloutState) -> str:
    if state.step is None:
        return "the end" if state.policy.then is Then.END else "the move to 100 %"
    if state.is_previewing:
        return "the preview"
    return f"step {state.step_index + 1} of {len(state.policy.steps)} ({state.step.weight} %)"


def _because_of(canary: CanarySeen) -> str:
    return f" ({canary.message})" if canary.message else ""
