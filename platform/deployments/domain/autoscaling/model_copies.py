"""Copies of hot models in a pool: how many replicas answer for each model, by the computation it takes. Pure.

    quota  = max(half of a replica's mean load, 0.25 s of computation per second)
    copies = ceil(load / quota), from 1 to the number of replicas

A model's load is the increase of its computation time per second over the last seconds, summed over the replicas. More
copies come at once; fewer once fewer have sufficed for the whole stabilization window, as with replicas. Hotter models
come first: further copies take at most a quarter of the memory of all replicas.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from deployments.domain.autoscaling.load_window import WINDOW_S
from deployments.domain.autoscaling.rate_limits import Moments
from integrations.clusters.base import Sample

LEAST_LOAD = 0.25
"""Seconds of computation per second for which one copy always suffices."""
_SHARE_OF_MEAN = 0.5
_SHARE_OF_MEMORY = 0.25
_IDLE_US = 100_000
"""A model that has computed for less since its replica started is not remembered."""

Copies = Mapping[str, int]  # of the models that have more than one, by `<namespace>.<service>`
_Counted = Mapping[str, Mapping[str, int]]  # microseconds of computation by process of a replica, by model


@dataclass(frozen=True, slots=True)
class ModelLoad:
    """What a model takes.

    Attributes:
        busy: seconds of computation per second, of all copies together.
        memory_bytes: of one copy; 0 where unknown.
    """

    busy: float
    memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class CopiesMemory:
    """The present copies, and what the next decision needs.

    Attributes:
        copies: as decided last.
        wanted: moments and the number that a model's load required then; each larger than all that follow it.
        counted_at: Unix seconds of `counted`; 0 before the first.
    """

    copies: Copies = field(default_factory=dict)
    wanted: Mapping[str, Moments] = field(default_factory=dict)
    counted_at: float = 0.0
    counted: _Counted = field(default_factory=dict)


def decide(
    memory: CopiesMemory, samples: Iterable[Sample], budget_bytes: int, *, window: timedelta, now: datetime
) -> CopiesMemory:
    """Return the copies for the present load; until the counters are some seconds apart, those of before.

    Args:
        samples: of the pool's ready replicas, whose memory `budget_bytes` limits each; 0 is no limit.
        window: for how long fewer copies must have sufficed before some leave.
    """
    found, at = list(samples), now.timestamp()
    if memory.counted_at and 0 <= at - memory.counted_at < WINDOW_S:
        return memory
    counted = {_process(each): _counts(each) for each in found}
    memory_bytes: dict[str, int] = defaultdict(int)
    for sample in found:
        for model in sample.models:
            memory_bytes[model.model] = max(memory_bytes[model.model], model.memory_bytes)
    seconds = at - memory.counted_at
    is_comparable = memory.counted_at and seconds > 0 and found
    remembered = replace(memory, counted_at=at, counted=counted)
    if not is_comparable:
        return remembered
    busy = _busy(memory.counted, counted, seconds)
    loads = {model: ModelLoad(busy.get(model, 0.0), memory_bytes[model]) for model in {*busy, *memory.wanted}}
    needed = required(loads, len(found))
    wanted = {
        model: (
            *((then, many) for then, many in memory.wanted.get(model, ()) if many > number and now - then <= window),
            (now, number),
        )
        for model in loads
        for number in [needed.get(model, 1)]
    }
    wanted = {model: moments for model, moments in wanted.items() if moments[0][1] > 1}
    highest = {model: moments[0][1] for model, moments in wanted.items()}
    return replace(remembered, wanted=wanted, copies=allotted(highest, loads, len(found), budget_bytes))


def required(loads: Mapping[str, ModelLoad], replicas: int) -> dict[str, int]:
    """Return the number of copies of each model that needs more than one."""
    if not replicas:
        return {}
    quota = max(_SHARE_OF_MEAN * sum(each.busy for each in loads.values()) / replicas, LEAST_LOAD)
    # Rounded before it is rounded up: 0.75 / 0.25 may come to a little more than 3.
    found = {model: min(math.ceil(round(each.busy / quota, 9)), replicas) for model, each in loads.items()}
    return {model: number for model, number in found.items() if number > 1}


def allotted(
    wanted: Mapping[str, int], loads: Mapping[str, ModelLoad], replicas: int, budget_bytes: int
) -> dict[str, int]:
    """Return the copies for which there is memory, the hottest models first; models with one are left out."""
    left = _SHARE_OF_MEMORY * budget_bytes * replicas if budget_bytes else math.inf
    found = {}
    for model in sorted(wanted, key=lambda each: (-loads[each].busy, each)):
        further, each_bytes = min(wanted[model], replicas) - 1, loads[model].memory_bytes
        if each_bytes:
            further = int(min(further, left // each_bytes))
        left -= further * each_bytes
        if further > 0:
            found[model] = further + 1
    return found


def _process(sample: Sample) -> str:
    return f"{sample.source} {sample.started_at:.0f}"  # whose counters begin at 0


def _counts(sample: Sample) -> dict[str, int]:
    return {each.model: each.busy_us for each in sample.models if each.busy_us >= _IDLE_US}


def _busy(before: _Counted, now: _Counted, seconds: float) -> dict[str, float]:
    """Return each model's seconds of computation per second; a process that was not there before does not count."""
    found: dict[str, float] = defaultdict(float)
    for process in before.keys() & now.keys():
        for model, busy_us in now[process].items():
            # Less than before where a model was not on the page for long: its counter began again.
            since = before[process].get(model, _IDLE_US)
            found[model] += (busy_us - since if busy_us >= since else busy_us) / 1e6 / seconds
    return {model: busy for model, busy in found.items() if busy > 0}


def copies_json(memory: CopiesMemory) -> dict[str, Any]:
    """Return the memory as JSON."""
    return {
        "copies": dict(memory.copies),
        "wanted": {
            model: [[at.isoformat(), number] for at, number in moments] for model, moments in memory.wanted.items()
        },
        "counted_at": memory.counted_at,
        "counted": {process: dict(models) for process, models in memory.counted.items()},
    }


def stored_copies(load: Mapping[str, Any]) -> CopiesMemory:
    """Return the memory of a revision's `load`; an empty one without any."""
    value: Mapping[str, Any] = load.get("copies", {})
    if not value:
        return CopiesMemory()
    wanted = {model: _moments(moments) for model, moments in value["wanted"].items()}
    return CopiesMemory(dict(value["copies"]), wanted, value["counted_at"], value["counted"])


def copies_of(load: Mapping[str, Any]) -> dict[str, int]:
    """Return the present copies from a revision's `load`."""
    found: dict[str, int] = load.get("copies", {}).get("copies", {})
    return found


def _moments(value: Sequence[Sequence[Any]]) -> Moments:
    return tuple((datetime.fromisoformat(at), int(number)) for at, number in value)
