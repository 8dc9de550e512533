"""State machine of a MIG repartition, from the proposal to a node with new slices that accepts pods. Pure.

    Proposed --approve--> Draining --no GPU pod left--> Cutting --success--> Done
      |    |                 |                             |
      |    | the node        | too long, abort             | failed, too long, abort
      v    v changed         v                             v
Declined  Outdated        Aborted                       Reverting --success, failed, too long--> Aborted

`wanted_of` returns the desired state of the node in each phase. Every tick applies it, so that the next tick repairs
the effects of a crash: while the node drains and is cut it is cordoned, and in every phase that lasts it is as it was
before. MIG manager answers in the label `nvidia.com/mig.config.state` (NVIDIA GPU Operator, "GPU Operator with MIG").
It reads a file that the kubelet updates on the node some time after the write (Kubernetes: "Mounted ConfigMaps are
updated automatically"), and fails at once for a name missing from it, so the label is set only after that delay.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from common.errors import InvalidTransition
from placement.mig.manager_file import FAILED, SUCCESS

DRAIN_LIMIT = timedelta(minutes=30)
CUT_LIMIT = timedelta(minutes=30)  # a cloud node may need a reboot for it


class Phase(StrEnum):
    """The phase of a repartition."""

    PROPOSED = "Proposed"
    DECLINED = "Declined"
    OUTDATED = "Outdated"
    DRAINING = "Draining"
    CUTTING = "Cutting"
    REVERTING = "Reverting"
    DONE = "Done"
    ABORTED = "Aborted"

    @property
    def is_over(self) -> bool:
        """Return whether the phase is final."""
        return self in (Phase.DECLINED, Phase.OUTDATED, Phase.DONE, Phase.ABORTED)

    @property
    def is_under_way(self) -> bool:
        """Return whether the node is being changed."""
        return self in (Phase.DRAINING, Phase.CUTTING, Phase.REVERTING)


@dataclass(frozen=True, slots=True)
class State:
    """The state of a repartition.

    Attributes:
        config: the name of the desired configuration; `config_before` is the node's label before, empty for none.
        since: when the phase began.
        message: why it waits, or how it ended.
        written_at: since when MIG manager's file has the configuration; None while it lacks it.
    """

    phase: Phase
    since: datetime
    config: str
    config_before: str
    message: str = ""
    written_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """The observed state of the node.

    Attributes:
        gpu_pods: remaining GPU pods of services.
        cordoned: no further pod comes.
        written: MIG manager's file has the configuration; `delay` is the longest time until the node has it.
        held: what blocked the work of the last tick; empty for nothing.
        strangers: GPU pods of others, which are never evicted.
        config, config_state: the node's labels `nvidia.com/mig.config` and `nvidia.com/mig.config.state`. A write of
            the first also sets the second to `pending`, so that an earlier success does not count for this one.
        is_cut: the node offers the desired slices.
    """

    gpu_pods: int
    strangers: tuple[str, ...]
    config: str
    config_state: str
    is_cut: bool
    cordoned: bool = True
    written: bool = True
    delay: timedelta = timedelta(0)
    held: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Desired state of the node: `cordoned`, services' GPU pods evicted, and the label; None leaves the label."""

    cordoned: bool
    evicting: bool = False
    config: str | None = None


def wanted_of(state: State) -> Wanted | None:
    """Return the desired state; None before the approval, and when the repartition leaves the node alone."""
    match state.phase:
        case Phase.DRAINING:
            return Wanted(cordoned=True, evicting=True)
        case Phase.CUTTING:
            return Wanted(cordoned=True, evicting=True, config=state.config)
        case Phase.REVERTING:
            return Wanted(cordoned=True, config=state.config_before)
        case Phase.DONE | Phase.ABORTED:
            return Wanted(cordoned=False)
        case _:
            return None


def approve(state: State, now: datetime) -> State:
    """Start it; raises InvalidTransition unless it waits for an approval."""
    if state.phase is not Phase.PROPOSED:
        raise InvalidTransition(f"the repartition is {state.phase}; only one that is proposed can be approved")
    return _to(state, Phase.DRAINING, now, "the node is drained")


def decline(state: State, now: datetime) -> State:
    """Decline the proposal; raises InvalidTransition unless it waits for an approval."""
    if state.phase is not Phase.PROPOSED:
        raise InvalidTransition(f"the repartition is {state.phase}; only one that is proposed can be declined")
    return _to(state, Phase.DECLINED, now, "declined")


def outdate(state: State, why: str, now: datetime) -> State:
    """Drop a proposal that no longer suits the node; raises InvalidTransition unless it is one."""
    if state.phase is not Phase.PROPOSED:
        raise InvalidTransition(f"the repartition is {state.phase}; only one that is proposed becomes outdated")
    return _to(state, Phase.OUTDATED, now, why)


def abort(state: State, now: datetime) -> State:
    """Stop, and restore the node's former layout; raises InvalidTransition where nothing is under way."""
    if state.phase is Phase.DRAINING:
        return _to(state, Phase.ABORTED, now, "aborted before anything was cut; the node takes pods again")
    if state.phase is Phase.CUTTING:
        return _to(state, Phase.REVERTING, now, "aborted; the GPUs are cut as they were")
    raise InvalidTransition(f"the repartition is {state.phase}; there is nothing to abort")


def advance(state: State, seen: Seen | None, now: datetime) -> State:
    """Return the repartition after one observation of the node; the same object where nothing changed.

    Args:
        seen: None where the node does not exist now.
    """
    waited = now - state.since
    if seen is None:
        return _gone(state, now, late=waited > CUT_LIMIT)
    if state.phase.is_under_way:
        state = _file_noted(state, seen, now)
    match state.phase:
        case Phase.DRAINING:
            return _drained(state, seen, now, late=waited > DRAIN_LIMIT)
        case Phase.CUTTING:
            return _cut(state, seen, now, late=waited > CUT_LIMIT)
        case Phase.REVERTING:
            return _reverted(state, seen, now, late=waited > CUT_LIMIT)
        case _:
            return state


def _gone(state: State, now: datetime, *, late: bool) -> State:
    if not state.phase.is_under_way:
        return state
    if late:
        limit = int(CUT_LIMIT.total_seconds() / 60)
        return _to(state, Phase.ABORTED, now, f"the node is gone, and did not come back within {limit} min")
    return _say(state, "the node is gone; it may come back")


def _file_noted(state: State, seen: Seen, now: datetime) -> State:
    if seen.written == (state.written_at is not None):
        return state
    return replace(state, written_at=now if seen.written else None)


def _drained(state: State, seen: Seen, now: datetime, *, late: bool) -> State:
    is_empty = seen.cordoned and not seen.gpu_pods and not seen.strangers
    if is_empty and state.written_at is not None and now - state.written_at >= seen.delay:
        return _to(state, Phase.CUTTING, now, "MIG manager cuts the GPUs")
    awaited = _awaited(seen, is_empty=is_empty)
    if late:
        limit = int(DRAIN_LIMIT.total_seconds() / 60)
        why = _with(f"waited {limit} min in vain for {awaited}", seen.held)
        return _to(state, Phase.ABORTED, now, f"{why}; nothing was cut, and the node takes pods again")
    return _say(state, _with(f"waits for {awaited}", seen.held))


def _awaited(seen: Seen, *, is_empty: bool) -> str:
    if seen.gpu_pods:
        return f"{_count(seen.gpu_pods, 'GPU pod')} of services to leave the node"
    if seen.strangers:
        return f"the GPU pod {seen.strangers[0]}, which is none of a service's, to leave the node"
    return "the cut to reach MIG manager's file on the node" if is_empty else "the node to be cordoned"


def _with(sentence: str, held: str) -> str:
    return f"{sentence} ({held})" if held else sentence


def _count(number: int, what: str) -> str:
    return f"1 {what}" if number == 1 else f"{number} {what}s"


def _cut(state: State, seen: Seen, now: datetime, *, late: bool) -> State:
    if seen.config == state.config and seen.config_state == SUCCESS and seen.is_cut:
        return _to(state, Phase.DONE, now, "the GPUs are cut, and the node takes pods again")
    if seen.config == state.config and seen.config_state == FAILED:
        return _to(state, Phase.REVERTING, now, "MIG manager failed; the GPUs are cut as they were")
    if late:
        limit = int(CUT_LIMIT.total_seconds() / 60)
        return _to(state, Phase.REVERTING, now, f"not cut within {limit} min; the GPUs are cut as they were")
    said = seen.config_state or "nothing"
    more = "" if said != SUCCESS else "; the node does not offer the slices yet"
    return _say(state, _with(f"MIG manager says {said}{more}", seen.held))


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
