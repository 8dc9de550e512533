"""Service level objectives of a service file: how many requests must succeed, and how many within which time. Pure.

objectives:
  availability: 99.9                        percent of the requests
  latency: {percent: 99, withinMs: 200}     percent of the answers, within milliseconds
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from common.errors import InvalidInput
from common.files.document import Document
from serving_runtime.shared.latency_edges import EDGES_US

LEAST_PERCENT = 95.0
"""Below, 14.4 times the budget is hardly ever or never reached, so the fastest alert could not fire."""
MOST_PERCENT = 99.999
BOUNDS_MS = tuple(edge / 1000 for edge in EDGES_US)
"""The times that a latency objective can name."""


@dataclass(frozen=True, slots=True)
class LatencyObjective:
    """At least `percent` of the answers take at most `within_ms`, which is one of `BOUNDS_MS`."""

    percent: float
    within_ms: float


@dataclass(frozen=True, slots=True)
class Objectives:
    """Objectives of a service, over 30 days.

    Attributes:
        availability: percent of the requests that do not fail by the service's fault; None without this objective.
        latency: None without this objective.
    """

    availability: float | None = None
    latency: LatencyObjective | None = None


def parse_objectives(spec: Document) -> Objectives | None:
    """Return the objectives of `spec.objectives`; None without any.

    Raises:
        InvalidInput: it is no object, has another field, a percentage is out of range, or replicas do not count
            latencies up to that time.
    """
    objectives = spec.optional("objectives")
    if objectives is None:
        return None
    is_set = objectives.raw("availability", None) is not None
    availability = _percent(objectives, "availability") if is_set else None
    found = Objectives(availability, objectives.part("latency", _latency))
    objectives.refuse_unknown()
    return None if found == Objectives() else found


def objectives_json(objectives: Objectives | None) -> dict[str, Any]:
    """Return objectives as the file has them; empty without any."""
    if objectives is None:
        return {}
    availability, latency = objectives.availability, objectives.latency
    found: dict[str, Any] = {} if availability is None else {"availability": _plain(availability)}
    if latency is not None:
        found["latency"] = {"percent": _plain(latency.percent), "withinMs": _plain(latency.within_ms)}
    return found


def stored_objectives(value: Any) -> Objectives | None:
    """Return the objectives in `spec.objectives` of a stored file; None where a later release stored others."""
    try:
        return parse_objectives(Document.of({"objectives": value}, "spec", "spec"))
    except InvalidInput:
        return None  # the service's view says that this release does not take the file


def _plain(number: float) -> float:
    """Return a number as people write it: 99 and not 99.0."""
    return int(number) if number == int(number) else number


def _percent(document: Document, name: str) -> float:
    return document.number(name, minimum=LEAST_PERCENT, maximum=MOST_PERCENT)


def _latency(latency: Document) -> LatencyObjective:
    percent = _percent(latency, "percent")
    within_ms = latency.number("withinMs", minimum=BOUNDS_MS[0], maximum=BOUNDS_MS[-1])
    latency.refuse_unknown()
    place = bisect_left(BOUNDS_MS, within_ms)
    if latency.is_sound("withinMs") and BOUNDS_MS[place] != within_ms:
        below, above = BOUNDS_MS[place - 1 : place + 1]
        what = f"is {within_ms:g}, but replicas count latencies up to {below:g} and {above:g}; write one of these"
        latency.fault("withinMs", what)
    return LatencyObjective(percent, within_ms)
