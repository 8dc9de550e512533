"""Event messages of rollout transitions. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass

from deployments.domain.phases import Code, Phase
from deployments.domain.rollout import RolloutState
from events.domain.kinds import Kind


@dataclass(frozen=True, slots=True)
class Line:
    """One event before it gets its number."""

    kind: Kind
    message: str


ENDS = {
    Phase.HEALTHY: Kind.ROLLOUT_HEALTHY,
    Phase.DEGRADED: Kind.ROLLOUT_DEGRADED,
    Phase.ABORTED: Kind.ROLLOUT_ABORTED,
}


def lines_between(before: RolloutState, after: RolloutState, canary: str) -> Iterator[Line]:
    """Return the events between two states of a rollout; progress in the evidence alone is no event."""
    if after.attempt != before.attempt:
        yield Line(Kind.ROLLOUT_RETRIED, f"the rollout to {canary} begins again (attempt {after.attempt})")
        return
    if after.phase is not before.phase and after.phase in ENDS:
        yield Line(ENDS[after.phase], f"the rollout to {canary} is {after.phase}: {after.reason.message}")
        return
    if after.confirmed_at is not None and before.confirmed_at is None:
        does = "sends what comes to the preview address" if after.is_previewing else after.portion.done
        yield Line(Kind.ROLLOUT_WEIGHT_CONFIRMED, f"the gateway {does} to {canary}")
    is_asking = after.reason.code is Code.AWAITING_APPROVAL and before.reason.code is not Code.AWAITING_APPROVAL
    if after.phase is Phase.PAUSED and before.phase is not Phase.PAUSED:
        message = f"the rollout to {canary} is paused until it is approved" if is_asking else after.reason.message
        yield Line(Kind.ROLLOUT_PAUSED, message)
    if is_asking:
        yield Line(Kind.ROLLOUT_APPROVAL_AWAITED, after.reason.message)
    if before.phase is Phase.PAUSED and after.phase is Phase.PROGRESSING:
        yield Line(Kind.ROLLOUT_CONTINUED, f"the rollout to {canary} goes on after its pause")
    if after.reason.code is Code.CANARY_NOT_READY and before.reason.code is not Code.CANARY_NOT_READY:
        yield Line(Kind.ROLLOUT_CANARY_NOT_READY, after.reason.message)
    if after.portion != before.portion:
        gets = after.portion.got if after.portion else "none of the requests until it is ready again"
        yield Line(Kind.ROLLOUT_WEIGHT_WANTED, f"{canary} is to get {gets}")
