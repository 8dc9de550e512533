"""Replica count: the horizontal autoscaler's decision from the load of each replica. Pure.

    desired = ceil(replicas * value / target)

is Kubernetes' Horizontal Pod Autoscaler ("Algorithm details"), and so are the rules around it: a tolerance of 10 %;
replicas without a measurement count as idle for scaling up and as on target for scaling down; of several metrics the
highest result, and no scaling down while one of them is missing; scaling down to the highest desired number of the
stabilization window, and up to the lowest one of its own; as fast as the policies of its `behavior` allow, by default
to twice as many or four more within 15 seconds ("Default behavior"). Without any evidence the number stays.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from deployments.domain.autoscaling.rate_limits import Memory, Moments, least_now, longest_period, most_now
from deployments.domain.service_file.scaling import ScaleMetric
from integrations.clusters.base import Behavior

TOLERANCE = 0.1
_DEFAULTS = Behavior()
_MEMORIES = ("right", "low", "added", "removed")
_WORDS: Mapping[str, str] = {
    ScaleMetric.CONCURRENCY: "{} requests in flight per replica, target {}",
    ScaleMetric.RPS: "{} requests per second and replica, target {}",
    ScaleMetric.QUEUE_TIME: "{} ms in the queue, target {}",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """One metric of a revision.

    Attributes:
        value: the mean over the measured replicas; None without any.
        measured: the number of measured replicas.
    """

    metric: str
    target: float
    value: float | None
    measured: int

    def __str__(self) -> str:
        shown = "no" if self.value is None else f"{self.value:.3g}"
        words = _WORDS.get(self.metric, "{} " + self.metric + " per replica, target {}")
        return words.format(shown, f"{self.target:.3g}")


@dataclass(frozen=True, slots=True)
class Bounds:
    """The allowed range of replicas, and the reason for `least`."""

    least: int
    most: int
    why_least: str = "minReplicas"


@dataclass(frozen=True, slots=True)
class Decision:
    """The desired number of replicas, the reason, and the memory to keep."""

    replicas: int
    why: str
    memory: Memory = field(default_factory=Memory)


def decide(
    replicas: int,
    readings: Sequence[Reading],
    bounds: Bounds,
    memory: Memory,
    *,
    window: timedelta,
    now: datetime,
    behavior: Behavior = _DEFAULTS,
) -> Decision:
    """Return the desired number of replicas.

    Args:
        replicas: the number so far.
        readings: of each watched metric.
        window: for how long a smaller number must have been desired before replicas are stopped (`window_of`).
        behavior: the rate limits.
    """
    right, why = _right(replicas, readings, behavior)
    if right < bounds.least:
        # Remembered like a number that the load required: when the bound falls, the window begins.
        right, why = bounds.least, bounds.why_least if replicas < bounds.least else why
    return _settled(replicas, right, why, bounds, memory, behavior=behavior, window=window, now=now)


def window_of(behavior: Behavior, default: timedelta) -> timedelta:
    """Return for how long a smaller number must have been desired before replicas are stopped."""
    said = behavior.down.window_s
    return default if said is None else timedelta(seconds=said)


def _settled(
    replicas: int,
    right: int,
    why: str,
    bounds: Bounds,
    memory: Memory,
    *,
    behavior: Behavior,
    window: timedelta,
    now: datetime,
) -> Decision:
    """Return the next number on the way to the desired one."""
    if not memory.right:
        before = ((now, replicas),)  # assumed right
        memory = replace(memory, right=before, low=before)
    memory = _remembering(memory, right, behavior, window, now)
    if right >= replicas:
        stable = max(replicas, min(number for _, number in memory.low))
        chosen = min(stable, most_now(replicas, memory, behavior.up, now))
    else:
        stable = min(replicas, max(number for _, number in memory.right))
        chosen = max(stable, least_now(replicas, memory, behavior.down, now))
    chosen = max(bounds.least, chosen)
    if chosen > bounds.most:
        chosen, why = bounds.most, f"{why}, but maxReplicas is {bounds.most}"
    if chosen > replicas:
        memory = replace(memory, added=(*memory.added, (now, chosen - replicas)))
    if chosen < replicas:
        memory = replace(memory, removed=(*memory.removed, (now, replicas - chosen)))
    return Decision(chosen, why, memory)


def hold(replicas: int, bounds: Bounds, memory: Memory, *, window: timedelta, now: datetime) -> Decision:
    """Return the least number of replicas, where a cluster's own autoscaler follows the load above it.

    A higher bound applies at once, a lower one after it has been lower for the whole window: by then the autoscaler has
    seen the remaining load.
    """
    return _settled(
        replicas, bounds.least, bounds.why_least, bounds, memory, behavior=_DEFAULTS, window=window, now=now
    )


def _right(replicas: int, readings: Sequence[Reading], behavior: Behavior) -> tuple[int, str]:
    """Return the desired number by the metrics alone, and the metric that decides it."""
    wanted = [(_by(each, replicas, behavior), str(each)) for each in readings if each.measured and replicas]
    if not wanted:
        return replicas, "nothing could be measured"
    number, why = max(wanted, key=lambda each: each[0])
    if number < replicas and len(wanted) < len(readings):
        return replicas, "not all could be measured"
    return number, why


def _by(reading: Reading, replicas: int, behavior: Behavior) -> int:
    """Return the desired number by one metric."""
    value, target, measured = reading.value or 0.0, reading.target, min(reading.measured, replicas)
    first = value / target
    if _is_tolerable(first, behavior):
        return replicas
    assumed = 0.0 if first > 1 else (replicas - measured) * target
    ratio = (value * measured + assumed) / replicas / target
    if _is_tolerable(ratio, behavior) or (ratio > 1) is not (first > 1):
        return replicas
    # Rounded before it is rounded up: 3 * 1.1 / 1.1 is a little more than 3.
    return math.ceil(round(ratio * replicas, 9))


def _is_tolerable(ratio: float, behavior: Behavior) -> bool:
    """Return whether a value is within the tolerance of its target."""
    said = behavior.up.tolerance if ratio > 1 else behavior.down.tolerance
    return abs(ratio - 1) <= (TOLERANCE if said is None else said)


def _remembering(memory: Memory, right: int, behavior: Behavior, window: timedelta, now: datetime) -> Memory:
    """Return the memory with the present desired number, without those that are too old or can no longer decide.

    For scaling up a moment is kept for its own window; without a window only the present one.
    """
    rise = timedelta(seconds=behavior.up.window_s or 0)
    high = [(at, number) for at, number in memory.right if number > right and now - at <= window]
    low = [(at, number) for at, number in memory.low if number < right and rise and now - at <= rise]
    return Memory(
        (*high, (now, right)),
        (*low, (now, right)),
        _within(memory.added, longest_period(behavior), now),
        _within(memory.removed, longest_period(behavior), now),
    )


def _within(moments: Moments, period: timedelta, now: datetime) -> Moments:
    return tuple((at, number) for at, number in moments if now - at < period)


def memory_json(memory: Memory) -> dict[str, Any]:
    """Return the memory as JSON."""
    return {
        name: [[at.isoformat(), number] for at, number in moments]
        for name in _MEMORIES
        for moments in [getattr(memory, name)]
    }


def stored_memory(value: Mapping[str, Any]) -> Memory:
    """Return the memory from its JSON; an empty one from nothing."""
    moments = (
        tuple((datetime.fromisoformat(at), int(number)) for at, number in value.get(name, ())) for name in _MEMORIES
    )
    return Memory(*moments)
