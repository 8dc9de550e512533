"""How many replicas a revision should have, from what each of them has to do. Pure.

    desired = ceil(replicas * value / target)

is Kubernetes' Horizontal Pod Autoscaler ("Algorithm details"), and so are the rules around it: a tolerance of 10 %;
replicas that could not be measured count as idle before scaling up and as busy as they should be before scaling down;
of several metrics the one that asks for most, and no scaling down while one of them is missing; scaling down to the
highest number that was right at any moment of the stabilization window; at most twice as many or four more within
15 seconds ("Default behavior"). Without any evidence the number stays.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from deployments.scaling import ScaleMetric

TOLERANCE = 0.1
SCALE_UP_PERIOD = timedelta(seconds=15)
SCALE_UP_FACTOR, SCALE_UP_REPLICAS = 2, 4
_WORDS = {
    ScaleMetric.CONCURRENCY: "{} requests in flight per replica, target {}",
    ScaleMetric.RPS: "{} requests per second and replica, target {}",
    ScaleMetric.QUEUE_TIME: "{} ms in the queue, target {}",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One metric of a revision.

    Attributes:
        value: the mean over the replicas that could be measured; None where none could.
        measured: how many could.
    """

    metric: ScaleMetric
    target: float
    value: float | None
    measured: int

    def __str__(self) -> str:
        shown = "no" if self.value is None else f"{self.value:.3g}"
        return _WORDS[self.metric].format(shown, f"{self.target:.3g}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """Between which numbers of replicas to choose, and why there should be at least `least`."""

    least: int
    most: int
    why_least: str = "minReplicas"


@dataclass(frozen=True, slots=True)
class Memory:
    """What was right before.

    Attributes:
        right: moments and the number that was right then; each larger than all that follow it.
        added: moments and how many replicas were added then.
    """

    right: tuple[tuple[datetime, int], ...] = ()
    added: tuple[tuple[datetime, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """How many replicas there should be and why, and what to remember."""

    replicas: int
    why: str
    memory: Memory = field(default_factory=Memory)


def decide(
    replicas: int, readings: Sequence[Reading], bounds: Bounds, memory: Memory, *, window: timedelta, now: datetime
) -> Decision:
    """Return how many replicas there should be.

    Args:
        replicas: how many there should be so far.
        readings: of each metric that is watched.
        window: for how long a smaller number must have been right before replicas are stopped.
    """
    right, why = _right(replicas, readings)
    if right < bounds.least:
        # Remembered like a number that the load asked for: when the bound falls, the window begins.
        right, why = bounds.least, bounds.why_least if replicas < bounds.least else why
    return _settled(replicas, right, why, bounds, memory, window=window, now=now)


def _settled(
    replicas: int, right: int, why: str, bounds: Bounds, memory: Memory, *, window: timedelta, now: datetime
) -> Decision:
    """Return the number on the way to the one that is right."""
    if not memory.right:
        memory = replace(memory, right=((now, replicas),))  # what was before this moment is not known to be wrong
    memory = _remembering(memory, right, window, now)
    chosen = right if right >= replicas else min(replicas, max(number for _, number in memory.right))
    chosen = max(bounds.least, min(chosen, _most_now(replicas, memory)))
    if chosen > bounds.most:
        chosen, why = bounds.most, f"{why}, but maxReplicas is {bounds.most}"
    if chosen > replicas:
        memory = replace(memory, added=(*memory.added, (now, chosen - replicas)))
    return Decision(chosen, why, memory)


def hold(replicas: int, bounds: Bounds, memory: Memory, *, window: timedelta, now: datetime) -> Decision:
    """Return how many replicas there should be at least, where a cluster's own autoscaler follows the load above it.

    The bound is followed up at once, and down when it has been lower for the whole window: until then the autoscaler
    has seen the load that is left.
    """
    return _settled(replicas, bounds.least, bounds.why_least, bounds, memory, window=window, now=now)


def _right(replicas: int, readings: Sequence[Reading]) -> tuple[int, str]:
    """Return the number that is right by the metrics alone, and the one that asks for it."""
    wanted = [(_by(reading, replicas), str(reading)) for reading in readings if reading.measured and replicas]
    if not wanted:
        return replicas, "nothing could be measured"
    number, why = max(wanted, key=lambda each: each[0])
    if number < replicas and len(wanted) < len(readings):
        return replicas, "not all could be measured"
    return number, why


def _by(reading: Reading, replicas: int) -> int:
    """Return the number that is right by one metric."""
    value, target, measured = reading.value or 0.0, reading.target, min(reading.measured, replicas)
    first = value / target
    if abs(first - 1) <= TOLERANCE:
        return replicas
    assumed = 0.0 if first > 1 else (replicas - measured) * target
    ratio = (value * measured + assumed) / replicas / target
    if abs(ratio - 1) <= TOLERANCE or (ratio > 1) is not (first > 1):
        return replicas
    # Rounded before it is rounded up: 3 * 1.1 / 1.1 is a little more than 3.
    return math.ceil(round(ratio * replicas, 9))


def _remembering(memory: Memory, right: int, window: timedelta, now: datetime) -> Memory:
    """Return the memory with what is right now and without what is too long ago, or will never be the highest."""
    kept = [(at, number) for at, number in memory.right if number > right and now - at <= window]
    added = tuple((at, number) for at, number in memory.added if now - at < SCALE_UP_PERIOD)
    return Memory((*kept, (now, right)), added)


def _most_now(replicas: int, memory: Memory) -> int:
    before = replicas - sum(number for _, number in memory.added)
    return max(before * SCALE_UP_FACTOR, before + SCALE_UP_REPLICAS, replicas)


def memory_json(memory: Memory) -> dict[str, Any]:
    """Return the memory as JSON."""
    return {
        name: [[at.isoformat(), number] for at, number in moments]
        for name, moments in (("right", memory.right), ("added", memory.added))
    }


def stored_memory(value: Mapping[str, Any]) -> Memory:
    """Return the memory out of its JSON; an empty one for nothing."""
    right, added = (
        tuple((datetime.fromisoformat(at), int(number)) for at, number in value.get(name, ()))
        for name in ("right", "added")
    )
    return Memory(right, added)
