"""The moves that people and ticks have in common: to the next step, and to an end. Pure."""

from dataclasses import replace
from datetime import datetime

from deployments.analysis.verdict import Verdict
from deployments.phases import Code, Phase, Reason
from deployments.rollout.state import RolloutState


def next_step(state: RolloutState) -> RolloutState:
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
    return because(after, Code.PROMOTING, f"{after.where} is next")


def finish(state: RolloutState, phase: Phase, code: Code, message: str, now: datetime) -> RolloutState:
    """Return the rollout over in `phase`, with the weight that its canary keeps."""
    weight, verdict = 0, state.verdict
    if phase is Phase.HEALTHY:
        weight, verdict = state.target_weight, Verdict.SUCCESSFUL
    elif state.is_mirroring:
        message += "; it gets no copies any more, and clients never saw an answer of it"
    elif state.is_previewing:
        message += "; the preview address is closed, and all traffic stays on stable"
    else:
        message += "; all traffic goes to stable"
    if phase is Phase.DEGRADED:
        verdict = Verdict.FAILED
    state = replace(state, phase=phase, weight=weight, verdict=verdict, waiting_since=None, finished_at=now)
    return because(state, code, message)


def because(state: RolloutState, code: Code, message: str) -> RolloutState:
    """Return the rollout with a reason for being where it is."""
    return replace(state, reason=Reason(code, message))
