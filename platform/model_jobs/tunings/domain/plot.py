"""Throughput-latency plot and table of a tuning, with a logarithmic latency scale. Pure.

Its source is the stored report of `fairlead.tune/v1` (`model_jobs.tunings.domain.order`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Any

WIDTH, HEIGHT = 640, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 64.0, 16.0, 26.0, 44.0
_MOST_TICKS = 5
_KEY = ("instances", "batch_size", "queue_delay_us", "intra_op_threads", "concurrency")


@dataclass(frozen=True, slots=True)
class Point:
    """A measured setting; a number that the report leaves out is 0.

    Attributes:
        intra_op_threads: of a run; 0 leaves it to the backend.
        concurrency: concurrent requests.
        notes: `chosen`, `as it is`, both or none.
    """

    instances: int
    batch_size: int
    queue_delay_us: int
    intra_op_threads: int
    concurrency: int
    requests_per_s: float
    p50_ms: float
    p99_ms: float
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """Return the tooltip of the point."""
        return (
            f"{self.requests_per_s:,.0f} requests/s with a p99 of {self.p99_ms:.2f} ms: "
            f"{self.instances} instance{'' if self.instances == 1 else 's'}, batch {self.batch_size}, "
            f"delay {self.queue_delay_us} µs, {self.concurrency} at once"
        )


@dataclass(frozen=True, slots=True)
class Dot:
    """A point with its position in the plot; `kind` is tried or best, `label` the text beside it."""

    x: float
    y: float
    kind: str
    words: str
    label: str = ""

    @property
    def is_right(self) -> bool:
        """Return whether its label has more room on its left."""
        return self.x > WIDTH / 2


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick label of an axis, and its position."""

    label: str
    at: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """The points with their axes; `line` joins the Pareto front, `words` is the same as text."""

    dots: tuple[Dot, ...]
    line: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    limit: Tick
    words: str


def points_of(report: Mapping[str, Any]) -> tuple[Point, ...]:
    """Return the Pareto front, the chosen point and the baseline, each once, lowest latency first."""
    named = (("chosen", report.get("chosen")), ("as it is", report.get("baseline")))
    found: dict[tuple[float, ...], tuple[Mapping[str, Any], tuple[str, ...]]] = {}
    for note, point in (*(("", each) for each in report.get("frontier") or ()), *named):
        if point:
            key = tuple(point.get(name, 0) for name in _KEY)
            notes = found[key][1] if key in found else ()
            found[key] = (point, (*notes, note) if note else notes)
    return tuple(sorted((_point(*each) for each in found.values()), key=lambda point: point.p99_ms))


def drawing_of(report: Mapping[str, Any], limit_ms: float) -> Drawing | None:
    """Return the plot of all measurements; None without any."""
    shown = points_of(report)
    measured = [_point(each) for each in report.get("points") or () if each]
    every = [point for point in (*measured, *shown) if point.p99_ms > 0]
    if not every:
        return None
    left = min(limit_ms, *(point.p99_ms for point in every)) / 1.2
    right = max(limit_ms, *(point.p99_ms for point in every)) * 1.2
    step = _step(max(1.0, *(point.requests_per_s for point in every)))
    top = step * max(1, ceil(max(point.requests_per_s for point in every) / step))

    def x(ms: float) -> float:
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * log10(ms / left) / log10(right / left), 1)

    def y(per_s: float) -> float:
        return round(HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * per_s / top, 1)

    def dot(point: Point, kind: str) -> Dot:
        return Dot(x(point.p99_ms), y(point.requests_per_s), kind, point.words, " and ".join(point.notes))

    best = [dot(point, "best") for point in shown if point.p99_ms > 0]
    frontier = [_point(each) for each in report.get("frontier") or () if each]
    return Drawing(
        dots=(*(dot(point, "tried") for point in measured if point.p99_ms > 0), *best),
        line=" ".join(f"{x(each.p99_ms)},{y(each.requests_per_s)}" for each in frontier if each.p99_ms > 0),
        across=tuple(Tick(f"{ms:g}", x(ms)) for ms in _latencies(left, right)),
        up=tuple(Tick(f"{step * index:,g}", y(step * index)) for index in range(round(top / step) + 1)),
        limit=Tick(f"limit {limit_ms:g} ms", x(limit_ms)),
        words="Throughput by latency; "
        + "; ".join(f"{' and '.join(each.notes) or 'best'}: {each.words}" for each in shown),
    )


def _point(said: Mapping[str, Any], notes: Sequence[str] = ()) -> Point:
    def number(name: str) -> float:
        return float(said.get(name) or 0)

    return Point(
        instances=int(number("instances")),
        batch_size=int(number("batch_size")),
        queue_delay_us=int(number("queue_delay_us")),
        intra_op_threads=int(number("intra_op_threads")),
        concurrency=int(number("concurrency")),
        requests_per_s=number("requests_per_s"),
        p50_ms=number("p50_ms"),
        p99_ms=number("p99_ms"),
        notes=tuple(notes),
    )


def _step(most: float) -> float:
    """Return the tick interval, 1, 2 or 5 times a power of ten, with at most `_MOST_TICKS` ticks."""
    power = 10.0 ** floor(log10(most / _MOST_TICKS))
    return next(power * each for each in (1, 2, 5, 10, 20) if power * each * _MOST_TICKS >= most)


def _latencies(left: float, right: float) -> list[float]:
    """Return 1, 2 and 5 times the powers of ten between two times."""
    powers = range(floor(log10(left)), floor(log10(right)) + 1)
    return [part * 10.0**power for power in powers for part in (1, 2, 5) if left <= part * 10.0**power <= right]
