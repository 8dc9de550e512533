"""Measurements of trials, and the medians of repeated ones. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from serving_runtime.tuning.space import Setting


@dataclass(frozen=True, slots=True, order=True)
class Trial:
    """A setting, and the number of requests in flight."""

    setting: Setting
    concurrency: int


@dataclass(frozen=True, slots=True)
class Load:
    """One measurement by the clients: responses per second, and times in milliseconds."""

    requests_per_s: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement of a trial; `load` is None where the server did not start or refused, with the `reason`."""

    trial: Trial
    load: Load | None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Point:
    """A trial with the medians of all its measurements."""

    trial: Trial
    load: Load
    repeats: int

    def within(self, limit_ms: float) -> bool:
        """Return whether it meets the limit."""
        return self.load.p99_ms <= limit_ms


@dataclass(frozen=True, slots=True)
class Seen:
    """All measurements so far.

    Attributes:
        points: by trial.
        failed: why settings cannot be used.
    """

    points: Mapping[Trial, Point]
    failed: Mapping[Setting, str]

    @classmethod
    def of(cls, measurements: Iterable[Measurement]) -> "Seen":
        loads: dict[Trial, list[Load]] = defaultdict(list)
        failed: dict[Setting, str] = {}
        for each in measurements:
            if each.load is None:
                failed[each.trial.setting] = each.reason
            else:
                loads[each.trial].append(each.load)
        points = {trial: _point(trial, found) for trial, found in loads.items() if trial.setting not in failed}
        return cls(points, failed)

    def of_setting(self, setting: Setting) -> dict[int, Point]:
        """Return the points of one setting by concurrency."""
        return {trial.concurrency: point for trial, point in self.points.items() if trial.setting == setting}

    def best(self, limit_ms: float) -> list[Point]:
        """Return the fastest point within the limit of each setting that has one, the fastest first."""
        best: dict[Setting, Point] = {}
        for point in self.points.values():
            known = best.get(point.trial.setting)
            if point.within(limit_ms) and (known is None or point.load.requests_per_s > known.load.requests_per_s):
                best[point.trial.setting] = point
        return sorted(best.values(), key=lambda point: -point.load.requests_per_s)


def _point(trial: Trial, loads: list[Load]) -> Point:
    return Point(
        trial,
        Load(
            median(load.requests_per_s for load in loads),
            median(load.p50_ms for load in loads),
            median(load.p99_ms for load in loads),
        ),
        len(loads),
    )
