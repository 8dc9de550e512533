"""A repartition on its way, from a proposal to a node that is cut anew and takes pods again. Pure.

    Proposed --approve--> Draining --no GPU pod left--> Cutting --success--> Done
        |                    |                             |
        |                    | too long, abort             | failed, too long, abort
        v                    v                             v
     Declined             Aborted                       Reverting --success, failed, too long--> Aborted

What has to be so in each phase is `wish`, asked for at every tick, so that a crash anywhere is made good by the next
one: while it drains and is cut the node is cordoned, and in every phase that lasts it is as it was before. MIG manager
answers in the label `nvidia.com/mig.config.state` (NVIDIA GPU Operator, "GPU Operator with MIG").
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from common.errors import InvalidTransition
from deployments.placement.mig_parted import FAILED, SUCCESS

DRAIN_LIMIT = timedelta(minutes=30)
CUT_LIMIT = timedelta(minutes=30)  # a node of a cloud may have to be started anew for it


class Phase(StrEnum):
    """Where a repartition stands."""

    PROPOSED = "Proposed"
    DECLINED = "Declined"
    DRAINING = "Draining"
    CUTTING = "Cutting"
    REVERTING = "Reverting"
    DONE = "Done"
    ABORTED = "Aborted"

    @property
    def is_over(self) -> bool:
        """Tell whether nothing will happen any more."""
        return self in (Phase.DECLINED, Phase.DONE, Phase.ABORTED)


@dataclass(frozen=True, slots=True)
class State:
    """A repartition on its way.

    Attributes:
        config: the name of the cut that is wanted; `config_before` what the node's label said, empty for nothing.
        since: when the phase began.
        message: why it waits, or how it ended.
    """

    phase: Phase
    since: datetime
    config: str
    config_before: str
    message: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """The node as it is.

    Attributes:
        gpu_pods: of services, still there.
        strangers: GPU pods of others, which are never evicted.
        config, config_state: the node's labels `nvidia.com/mig.config` and `nvidia.com/mig.config.state`. Whoever
            sets the first sets the second to `pending`, so that a success before is not taken for this one's.
        is_cut: the node offers the slices that are wanted.
    """

    gpu_pods: int
    strangers: tuple[str, ...]
    config: str
    config_state: str
    is_cut: bool


@dataclass(frozen=True, slots=True)
class Wish:
    """What has to be so on the node: `cordoned`, services' GPU pods evicted, and the label; None leaves it."""

    cordoned: bool
    evicting: bool = False
    config: str | None = None


def wish(state: State) -> Wish | None:
    """Return what has to be so; None where the node is nobody's business yet, or no more."""
    match state.phase:
        case Phase.DRAINING:
            return Wish(cordoned=True, evicting=True)
        case Phase.CUTTING:
            return Wish(cordoned=True, evicting=True, config=state.config)
        case Phase.REVERTING:
            return Wish(cordoned=True, config=state.config_before)
        case Phase.DONE | Phase.ABORTED:
            return Wish(cordoned=False)
        case _:
            return None


def approve(state: State, now: datetime) -> State:
    """Begin; raises InvalidTransition unless it waits for that."""
    if state.phase is not Phase.PROPOSED:
        raise InvalidTransition(f"the repartition is {state.phase}; only one that is proposed can be approved")
    return _to(state, Phase.DRAINING, now, "the node is drained")


def decline(state: State, now: datetime) -> State:
    """Leave it; raises InvalidTransition unless it waits for an approval."""
    if state.phase is not Phase.PROPOSED:
        raise InvalidTransition(f"the repartition is {state.phase}; only one that is proposed can be declined")
    return _to(state, Phase.DECLINED, now, "declined")


def abort(state: State, now: datetime) -> State:
    """Stop on the way, and bring the node back to what it was; raises InvalidTransition where nothing is under way."""
    if state.phase is Phase.DRAINING:
        return _to(state, Phase.ABORTED, now, "aborted before anything was cut; the node takes pods again")
    if state.phase is Phase.CUTTING:
        return _to(state, Phase.REVERTING, now, "aborted; the GPUs are cut as they were")
    raise InvalidTransition(f"the repartition is {state.phase}; there is nothing to abort")


def advance(state: State, seen: Seen, now: datetime) -> State:
    """Return the repartition after one look at the node; the same object where nothing changed."""
    waited = now - state.since
    match state.phase:
        case Phase.DRAINING:
            return _drained(state, seen, now, late=waited > DRAIN_LIMIT)
        case Phase.CUTTING:
            return _cut(state, seen, now, late=waited > CUT_LIMIT)
        case Phase.REVERTING:
            return _reverted(state, seen, now, late=waited > CUT_LIMIT)
        case _:
            return state


def _drained(state: State, seen: Seen, now: datetime, *, late: bool) -> State:
    if not seen.gpu_pods and not seen.strangers:
        return _to(state, Phase.CUTTING, now, "MIG manager cuts the GPUs")
    who = f"{seen.gpu_pods} GPU pods of services" if seen.gpu_pods else f"the GPU pod {seen.strangers[0]}"
    if late:
        limit = int(DRAIN_LIMIT.total_seconds() / 60)
        return _to(state, Phase.ABORTED, now, f"{who} did not leave the node within {limit} min; nothing was cut")
    return _say(state, f"{who} still to leave the node")


def _cut(state: State, seen: Seen, now: datetime, *, late: bool) -> State:
    if seen.config == state.config and seen.config_state == SUCCESS and seen.is_cut:
        return _to(state, Phase.DONE, now, "the GPUs are cut, and the node takes pods again")
    if seen.config == state.config and seen.config_state == FAILED:
        return _to(state, Phase.REVERTING, now, "MIG manager failed; the GPUs are cut as they were")
    if late:
        limit = int(CUT_LIMIT.total_seconds() / 60)
        return _to(state, Phase.REVERTING, now, f"not cut within {limit} min; the GPUs are cut as they were")
    said = seen.config_state or "nothing"
    return _say(
        state, f"MIG manager says {said}{'' if said != SUCCESS else '; the node does not offer the slices yet'}"
    )


def _reverted(state: State, seen: Seen, now: datetime, *, late: bool) -> State:
    is_back = seen.config == state.config_before
    if is_back and seen.config_state == SUCCESS:
        return _to(state, Phase.ABORTED, now, f"{state.message}: done, and the node takes pods again")
    if late or not state.config_before or (is_back and seen.config_state == FAILED):
        asked = "look at MIG manager's log and at what the node has now"
        return _to(state, Phase.ABORTED, now, f"{state.message}: not confirmed; the node takes pods again; {asked}")
    return state


def _to(state: State, phase: Phase, now: datetime, message: str) -> State:
    return replace(state, phase=phase, since=now, message=message)


def _say(state: State, message: str) -> State:
    return state if message == state.message else replace(state, message=message)
