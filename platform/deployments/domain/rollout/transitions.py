"""Rollout transitions shared by commands and ticks: to the next step, and to an end. Pure."""

from dataclasses import replace
from datetime import datetime

from deployments.domain.analysis.verdict import Verdict
from deployments.domain.phases import Code, Phase, Reason
from deployments.domain.policy import Then
from deployments.domain.rollout.state import RolloutState
from deployments.domain.rollout.traffic_split import Portion


def next_step(state: RolloutState) -> RolloutState:
    """Return the rollout at its next step, whose portion the next observation of a ready canary sets.

    Until then the gateway's traffic stays as it is: it moves from one step to the next in one update, so no request
    meets half of it. Copies in flight by then finish on clusters of their own, and are counted there.
    """
    after = replace(
        state,
        phase=Phase.PROGRESSING,
        step_index=state.step_index + 1,
        verdict=Verdict.RUNNING,
        confirmed_at=None,
    )
    if after.step is None and after.policy.then is Then.END:
        after = replace(after, portion=Portion())
    return because(after, Code.PROMOTING, f"{after.where} is next")


def finish(state: RolloutState, phase: Phase, code: Code, message: str, now: datetime) -> RolloutState:
    """Return the rollout ended in `phase`, with the portion that its canary keeps."""
    portion, verdict = Portion(), state.verdict
    if phase is Phase.HEALTHY:
        portion, verdict = state.wanted, Verdict.SUCCESSFUL
    elif state.is_mirroring:
        message += "; it gets no copies any more, and clients never saw an answer of it"
    elif state.is_previewing:
        message += "; the preview address is closed"
        if code is not Code.SUPERSEDED:
            message += ", and all traffic stays on stable"
    elif code is not Code.SUPERSEDED:  # the superseding rollout decides where the traffic goes; after a stop, nowhere
        message += "; all traffic goes to stable"
    if phase is Phase.DEGRADED:
        verdict = Verdict.FAILED
    state = replace(state, phase=phase, portion=portion, verdict=verdict, waiting_since=None, finished_at=now)
    return because(state, code, message)


def because(state: RolloutState, code: Code, message: str) -> RolloutState:
    """Return the rollout with a new reason."""
    return replace(state, reason=Reason(code, message))
