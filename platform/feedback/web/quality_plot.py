"""Quality over time of a service's revisions as a line plot with 95 % intervals. Pure.

A point is the mean of one period; periods without scores leave a gap. The scale begins at 0, the best.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10

from feedback.domain.quality import Series, Sums, bucketed
from feedback.domain.scorers import Unit

WIDTH, HEIGHT = 400, 180
_LEFT, _RIGHT, _TOP, _BOTTOM = 54.0, 20.0, 10.0, 26.0
_MOST_TICKS = 4
_MOST_POINTS = 30
_LENGTHS = tuple(timedelta(minutes=each) for each in (1, 2, 5, 15, 60, 180, 360, 720, 1440, 4320, 10080))
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Dot:
    """A period's mean with its place in the plot."""

    x: float
    y: float
    words: str


@dataclass(frozen=True, slots=True)
class Line:
    """A revision: runs of periods without a gap, each as points of SVG, with the area of its intervals."""

    label: str
    role: str
    runs: tuple[str, ...]
    bands: tuple[str, ...]
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Tick:
    """A label of an axis, and its place."""

    label: str
    at: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """Lines with their axes; `words` is the same as text."""

    lines: tuple[Line, ...]
    times: tuple[Tick, ...]
    values: tuple[Tick, ...]
    period: str
    words: str


def drawing(revisions: Sequence[tuple[str, str, Series]], unit: Unit, *, each: timedelta) -> Drawing | None:
    """Return the plot of revisions, each with label, role and series; None without scores.

    Args:
        each: the shortest period, in which the series are.
    """
    times = [at for _, _, series in revisions for at, _ in series]
    if not times:
        return None
    length = _length(max(times) - min(times), each)
    lines = [(label, role, bucketed(series, length)) for label, role, series in revisions if series]
    begins = min(series[0][0] for _, _, series in lines)
    ends = max(series[-1][0] for _, _, series in lines)
    most = _most([sums for _, _, series in lines for _, sums in series]) * unit.scale
    step = _step(most)
    top = step * max(1, ceil(round(most / step, 9)))

    def x(at: datetime) -> float:
        share = (at - begins) / (ends - begins) if ends > begins else 0.5
        return round(_LEFT + (WIDTH - _LEFT - _RIGHT) * share, 1)

    def y(value: float) -> float:
        return round(_TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - min(value, top) / top), 1)

    def line(label: str, role: str, series: Series) -> Line:
        runs = _runs(series, length)
        return Line(
            label,
            role,
            tuple(" ".join(f"{x(at)},{y((s.mean or 0) * unit.scale)}" for at, s in run) for run in runs),
            tuple(_band(run, x, y, unit.scale) for run in runs if len(run) > 1),
            tuple(
                Dot(x(at), y((s.mean or 0) * unit.scale), f"{label}, {at:%Y-%m-%d %H:%M} UTC: {_words(s, unit)}")
                for at, s in series
            ),
        )

    return Drawing(
        tuple(line(*one) for one in lines),
        tuple(Tick(_time(at, ends - begins), x(at)) for at in _ticks(begins, ends, length)),
        tuple(Tick(shown(step * index, unit), y(step * index)) for index in range(round(top / step) + 1)),
        _period(length),
        f"{unit.name[:1].upper()}{unit.name[1:]} over time; the newest period: "
        + "; ".join(f"{label} {_words(series[-1][1], unit)}" for label, _, series in lines),
    )


def shown(value: float | None, unit: Unit) -> str:
    """Return a number of the unit, `3.2 %` or `0.41`; a dash for None."""
    if value is None:
        return "\N{EN DASH}"
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{text}\N{NO-BREAK SPACE}%" if unit.name.startswith("percent") else text


def _words(sums: Sums, unit: Unit) -> str:
    value = None if sums.mean is None else sums.mean * unit.scale
    return f"{shown(value, unit)} of {sums.scores:,} {'label' if sums.scores == 1 else 'labels'}"


def _most(of: Sequence[Sums]) -> float:
    """Return where the scale may end: above all means, and above intervals that do not reach twice as high."""
    mean, high = max(sums.mean or 0.0 for sums in of), max(_ends(sums)[1] for sums in of)
    return min(high, 2 * mean) if mean else high


def _ends(sums: Sums) -> tuple[float, float]:
    """Return the interval of a period; its mean twice where one score has none."""
    mean = sums.mean or 0.0
    return sums.interval() or (mean, mean)


def _runs(series: Series, length: timedelta) -> list[list[tuple[datetime, Sums]]]:
    runs: list[list[tuple[datetime, Sums]]] = []
    for at, sums in series:
        if runs and at - runs[-1][-1][0] <= length:
            runs[-1].append((at, sums))
        else:
            runs.append([(at, sums)])
    return runs


def _band(run: Series, x: Callable[[datetime], float], y: Callable[[float], float], scale: float) -> str:
    upper = [f"{x(at)},{y(_ends(sums)[1] * scale)}" for at, sums in run]
    lower = [f"{x(at)},{y(_ends(sums)[0] * scale)}" for at, sums in reversed(run)]
    return " ".join([*upper, *lower])


def _length(span: timedelta, least: timedelta) -> timedelta:
    """Return the shortest period with at most `_MOST_POINTS` of them."""
    return next((each for each in _LENGTHS if each >= least and span / each < _MOST_POINTS), _LENGTHS[-1])


def _period(length: timedelta) -> str:
    minutes = int(length.total_seconds()) // 60
    size, name = next((s, n) for s, n in ((1440, "day"), (60, "hour"), (1, "minute")) if minutes % s == 0)
    return name if minutes == size else f"{minutes // size} {name}s"


def _ticks(begins: datetime, ends: datetime, length: timedelta) -> list[datetime]:
    """Return at most `_MOST_TICKS` times: the beginnings of days, or of periods where all is within two days."""
    if ends - begins > 2 * _DAY:
        midnight = begins.replace(hour=0, minute=0, second=0, microsecond=0)
        days = [midnight + _DAY * index for index in range(1, (ends - midnight) // _DAY + 1)]
        return days[:: ceil(len(days) / _MOST_TICKS)]
    count = round((ends - begins) / length)
    pieces = min(_MOST_TICKS - 1, count)
    return [begins + length * round(count * index / pieces) for index in range(pieces + 1)] if pieces else [begins]


def _time(at: datetime, span: timedelta) -> str:
    return f"{at.astimezone(UTC):%m-%d}" if span > 2 * _DAY else f"{at.astimezone(UTC):%H:%M}"


def _step(most: float) -> float:
    """Return the tick interval, 1, 2 or 5 times a power of ten, with at most `_MOST_TICKS` ticks."""
    if most <= 0:
        return 1.0
    power = 10.0 ** floor(log10(most / _MOST_TICKS))
    return next(power * each for each in (1, 2, 5, 10, 20) if power * each * _MOST_TICKS >= most)
