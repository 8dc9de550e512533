"""Latency plot of versions by batch size. Pure.

Measurements are those of the runtime's `profile`: median and 99th percentile of one execution in microseconds, for
each batch size. The plot has one column for each batch size and a scale from 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from operator import attrgetter
from typing import Any

WIDTH, HEIGHT = 400, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 10.0, 10.0, 26.0
_MOST_TICKS = 4


@dataclass(frozen=True, slots=True)
class Measured:
    """One batch size; latencies are of the whole batch, in microseconds."""

    batch_size: int
    p50_us: float
    p99_us: float

    @property
    def rows_per_second(self) -> float:
        """Return the rows per second of one instance with such batches, at the median."""
        return self.batch_size / self.p50_us * 1e6 if self.p50_us else 0.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A measured value with its position in the plot."""

    x: float
    y: float
    words: str


@dataclass(frozen=True, slots=True)
class Line:
    """One statistic of one version: `statistic` is p50 or p99, `side` 0 for the first version and 1 for the other."""

    statistic: str
    side: int
    dots: tuple[Dot, ...]

    @property
    def points(self) -> str:
        """Return the dots as points of an SVG polyline."""
        return " ".join(f"{dot.x},{dot.y}" for dot in self.dots)


@dataclass(frozen=True, slots=True)
class Tick:
    """A tick label of an axis, and its position."""

    label: str
    at: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines with their axes; `words` is the same as text."""

    lines: tuple[Line, ...]
    batches: tuple[Tick, ...]
    latencies: tuple[Tick, ...]
    words: str


def measured(profile: Mapping[str, Any]) -> tuple[Measured, ...]:
    """Return a stored profile's batch sizes, smallest first; empty without measurements."""
    found = [
        Measured(each["batch_size"], each["latency_p50_us"], each["latency_p99_us"])
        for each in profile.get("batches") or ()
    ]
    return tuple(sorted(found, key=lambda each: each.batch_size))


def drawing(versions: Sequence[tuple[str, Sequence[Measured]]]) -> Drawing | None:
    """Return the latencies of one version, or of two to compare, by their labels; None without any."""
    sizes = sorted({each.batch_size for _, rows in versions for each in rows})
    if not sizes:
        return None
    most = max(1.0, *(each.p99_us for _, rows in versions for each in rows))
    step = _step(most)
    top = step * max(1, ceil(most / step))
    room = (WIDTH - _LEFT - _RIGHT) / max(1, len(sizes) - 1)
    x = {size: round(_LEFT + index * room, 1) for index, size in enumerate(sizes)}

    def y(us: float) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - us / top), 1)

    lines = tuple(
        Line(statistic, side, tuple(Dot(x[r.batch_size], y(of(r)), _dot_title(label, r, name, of(r))) for r in rows))
        for side, (label, rows) in enumerate(versions)
        for statistic, name, of in (
            ("p99", "99th percentile", attrgetter("p99_us")),
            ("p50", "median", attrgetter("p50_us")),
        )
        if rows
    )
    ticks = tuple(Tick(duration(step * index), y(step * index)) for index in range(round(top / step) + 1))
    words = "; ".join(
        f"{label}: {', '.join(f'{duration(row.p50_us)} for {row.batch_size}' for row in rows)}"
        for label, rows in versions
        if rows
    )
    return Drawing(lines, tuple(Tick(str(size), at) for size, at in x.items()), ticks, f"Median by batch size, {words}")


def duration(us: float) -> str:
    """Return `850 µs`, `1.2 ms` or `3 s`, to at most three digits."""
    unit, size = next(each for each in (("s", 1e6), ("ms", 1e3), ("µs", 0.0)) if us >= each[1])
    value = us / (size or 1)
    digits = 0 if value >= 100 or value == round(value) else 1 if value >= 10 else 2
    text = f"{value:.{digits}f}"
    return f"{text.rstrip('0').rstrip('.') if '.' in text else text}\N{NO-BREAK SPACE}{unit}"


def _dot_title(label: str, row: Measured, name: str, us: float) -> str:
    return f"{label}, batch of {row.batch_size}: {name} {duration(us)}"


def _step(most: float) -> float:
    """Return the tick interval, 1, 2 or 5 times a power of ten, with at most `_MOST_TICKS` ticks."""
    power = 10.0 ** floor(log10(most / _MOST_TICKS))
    return next(power * each for each in (1, 2, 5, 10, 20) if power * each * _MOST_TICKS >= most)
