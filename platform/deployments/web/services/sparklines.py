"""Sparklines: small charts of a rate over time, for rows of a table. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

WIDTH, HEIGHT = 120.0, 28.0
_HEADROOM = 2.0  # above the highest value, for half of the line's own width


@dataclass(frozen=True, slots=True)
class Spark:
    """A drawing in its own units, WIDTH by HEIGHT.

    Attributes:
        line, area: SVG path data (`d`); empty without data.
        words: the text alternative.
    """

    line: str
    area: str
    words: str


def spark_of(rates: Sequence[float | None], words: str) -> Spark:
    """Return a chart of evenly spaced rates; a missing one is a gap in the line."""
    highest = max((rate for rate in rates if rate is not None), default=0.0)
    lines, areas = [], []
    for is_there, group in groupby(enumerate(rates), key=lambda each: each[1] is not None):
        if is_there:
            points = [(_x(index, len(rates)), _y(rate or 0.0, highest)) for index, rate in group]
            if len(points) == 1:
                points.append((points[0][0] + 1, points[0][1]))
            along = " ".join(f"{x:g},{y:g}" for x, y in points)
            lines.append(f"M{along}")
            areas.append(f"M{points[0][0]:g},{HEIGHT:g} {along} {points[-1][0]:g},{HEIGHT:g}Z")
    return Spark("".join(lines), "".join(areas), words)


def _x(index: int, count: int) -> float:
    return round(WIDTH * index / max(1, count - 1), 1)


def _y(rate: float, highest: float) -> float:
    least = HEIGHT - 1
    return round(least - (least - _HEADROOM) * rate / highest, 1) if highest else least
