"""Waves of an upgrade of the fleet, and which services start next. Pure.

    Waiting -> Upgrading -> Upgraded
       |           |-----> Failed: the upgrade pauses
       `-----------`-----> Skipped: stopped, gone over by itself, or cancelled

The first wave is one service, each further one a share of all. A wave begins when the one before has ended.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from deployments.domain.phases import Code
from deployments.domain.phases import Phase as RolloutPhase


class Phase(StrEnum):
    """The phase of an upgrade."""

    RUNNING = "Running"
    PAUSED = "Paused"
    COMPLETE = "Complete"
    CANCELLED = "Cancelled"

    @property
    def is_over(self) -> bool:
        """Return whether it starts nothing any more."""
        return self in (Phase.COMPLETE, Phase.CANCELLED)


class State(StrEnum):
    """The state of a service in an upgrade."""

    WAITING = "Waiting"
    UPGRADING = "Upgrading"
    UPGRADED = "Upgraded"
    FAILED = "Failed"
    SKIPPED = "Skipped"

    @property
    def is_over(self) -> bool:
        """Return whether the service is no longer to be upgraded."""
        return self in (State.UPGRADED, State.FAILED, State.SKIPPED)


@dataclass(frozen=True, slots=True)
class Member:
    """A service of an upgrade; `id` is its row's."""

    id: int
    wave: int
    state: State


def waves(count: int, percent: int) -> list[int]:
    """Return the number of the wave of each service, in order, from 1.

    Args:
        count: of services.
        percent: share of them in each wave after the first, 1 to 100.
    """
    size = max(1, math.ceil(count * percent / 100))
    return [1 if place == 0 else 2 + (place - 1) // size for place in range(count)]


def next_members(members: Sequence[Member], at_once: int) -> tuple[int, ...]:
    """Return the ids of the services to start now, so that at most `at_once` are being upgraded."""
    open_ones = [each for each in members if not each.state.is_over]
    if not open_ones:
        return ()
    wave = min(each.wave for each in open_ones)
    going = sum(each.state is State.UPGRADING for each in open_ones)
    waiting = [each.id for each in open_ones if each.wave == wave and each.state is State.WAITING]
    return tuple(waiting[: max(0, at_once - going)])


def is_complete(members: Sequence[Member]) -> bool:
    """Return whether every service is over."""
    return all(each.state.is_over for each in members)


def outcome_of(rollout: RolloutPhase, reason: Code) -> State:
    """Return the state of a service by the phase of its rollout; a later rollout of its own is no failure."""
    if not rollout.is_finished:
        return State.UPGRADING
    if rollout is RolloutPhase.HEALTHY:
        return State.UPGRADED
    return State.SKIPPED if reason is Code.SUPERSEDED else State.FAILED
