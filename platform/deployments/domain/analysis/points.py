"""Points of a step's evidence, for its chart. Pure.

A point is due when a hundredth of the step's time has passed since the one before: a chart of a minute has one for
each tick, one of a day has about seven hundred, and nothing has to be thinned out.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

PARTS = 100
_COLUMNS = ("canary", "stable", "limit", "low", "high", "evidence_percent")


def is_due(began: datetime, last: datetime | None, now: datetime) -> bool:
    """Return whether a point is due."""
    return last is None or now - last >= (now - began) / PARTS


def values_of(measurements: Iterable[Mapping[str, Any]]) -> dict[str, list[float | None]]:
    """Return a run's measurements in the form of a point: metric -> canary, stable, limit, low, high, evidence."""
    return {each["metric"]: [each.get(column) for column in _COLUMNS] for each in measurements}
