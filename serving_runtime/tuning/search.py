"""Configuration search by hill climbing: chooses the next trial from all measurements so far. Pure.

    sweep ------------> climb -----------------> confirm ------> over
    settings from all   neighbours of the two    the best settings and the one that there is,
    over the space      best settings            in turns, REPEATS times each

Each setting is measured at increasing concurrency, until its latency exceeds the limit or its throughput saturates. A
share of the budget ends each stage, if its trials have not ended before. One measurement on a busy machine is noise:
the chosen setting was measured REPEATS times, interleaved with others, and judged by its medians.
"""

from collections.abc import Mapping, Sequence

from serving_runtime.tuning.measurement import Measurement, Point, Seen, Trial
from serving_runtime.tuning.space import Setting, Space

SWEEP_UNTIL, CLIMB_UNTIL = 0.45, 0.75
REPEATS = 3
FINALISTS = 4
AS_FAST = 0.97
"""Settings of at least this share of the best throughput count as equal, and the cheapest is chosen."""

_CLIMBERS = 2
_GAIN = 1.03


def next_trial(space: Space, limit_ms: float, measured: Sequence[Measurement], spent: float) -> Trial | None:
    """Return the next trial; None when the search is over.

    Args:
        spent: the used share of the budget; 1 ends the search.
    """
    seen = Seen.of(measured)
    if spent >= 1:
        return None
    swept = None if spent >= SWEEP_UNTIL else _first(space, limit_ms, seen, space.coarse())
    climbed = None if swept or spent >= CLIMB_UNTIL else _climb(space, limit_ms, seen)
    return swept or climbed or _confirm(space, limit_ms, seen)


def choose(space: Space, limit_ms: float, measured: Sequence[Measurement]) -> Point | None:
    """Return the operating point, None where no setting meets the limit.

    Of the points as fast as the fastest it is the cheapest, and preferably the baseline: also where the budget ended
    before the baseline was measured as often as others, so nothing slower replaces it.
    """
    best = Seen.of(measured).best(limit_ms)
    sure = max((point.repeats for point in best), default=0)
    finalists = [
        point for point in best if point.repeats >= min(sure, REPEATS) or point.trial.setting == space.baseline
    ]
    if not finalists:
        return None
    fastest = finalists[0].load.requests_per_s
    as_fast = [point for point in finalists if point.load.requests_per_s >= AS_FAST * fastest]
    return min(as_fast, key=lambda point: (point.trial.setting != space.baseline, point.trial.setting.cost))


def frontier(points: Sequence[Point]) -> list[Point]:
    """Return the Pareto front of latency and throughput, lowest latency first."""
    found: list[Point] = []
    for point in sorted(points, key=lambda point: (point.load.p99_ms, -point.load.requests_per_s)):
        if not found or point.load.requests_per_s > found[-1].load.requests_per_s:
            found.append(point)
    return found


def _first(space: Space, limit_ms: float, seen: Seen, settings: Sequence[Setting], start: int = 0) -> Trial | None:
    """Return the first trial that one of the settings still needs."""
    for setting in settings:
        concurrency = _next_rung(space, limit_ms, seen, setting, start or _natural(setting))
        if concurrency is not None:
            return Trial(setting, concurrency)
    return None


def _climb(space: Space, limit_ms: float, seen: Seen) -> Trial | None:
    best = seen.best(limit_ms)
    for point in best[:FINALISTS]:
        if beside := _between(space, limit_ms, seen, point):
            return beside
    for point in best[:_CLIMBERS]:
        around = space.neighbours(point.trial.setting)
        if found := _first(space, limit_ms, seen, around, start=point.trial.concurrency):
            return found
    return None


def _confirm(space: Space, limit_ms: float, seen: Seen) -> Trial | None:
    """Return the finalist with the fewest measurements; as medians move, others may come in."""
    best = seen.best(limit_ms)
    finalists = best[:FINALISTS] + [point for point in best[FINALISTS:] if point.trial.setting == space.baseline]
    least = min(finalists, key=lambda point: point.repeats, default=None)
    return least.trial if least is not None and least.repeats < REPEATS else None


def _next_rung(space: Space, limit_ms: float, seen: Seen, setting: Setting, start: int) -> int | None:
    """Return a setting's next concurrency; None once its best is known, or that it cannot be used."""
    if setting in seen.failed:
        return None
    ladder, points = space.concurrencies, seen.of_setting(setting)
    if not points:
        return max(rung for rung in ladder if rung <= max(start, ladder[0]))
    if not any(point.within(limit_ms) for point in points.values()):
        return _below(ladder, min(points))
    top = max(points)
    if not points[top].within(limit_ms) or not _rises(points):
        return None
    return next((rung for rung in ladder if rung >= 2 * top), None)


def _below(ladder: Sequence[int], lowest: int) -> int | None:
    return max((rung for rung in ladder if rung < lowest and 2 * rung <= lowest + 1), default=None)


def _rises(points: Mapping[int, Point]) -> bool:
    """Return whether higher concurrency still raises throughput."""
    *_, before, last = [None, *(points[rung].load.requests_per_s for rung in sorted(points))]
    return before is None or last is None or last >= _GAIN * before


def _between(space: Space, limit_ms: float, seen: Seen, point: Point) -> Trial | None:
    """Return the rung between the best one within the limit and the next tried one, if that exceeded it."""
    ladder, points = space.concurrencies, seen.of_setting(point.trial.setting)
    at = ladder.index(point.trial.concurrency)
    above = [rung for rung in points if rung > point.trial.concurrency]
    if not above or at + 1 >= len(ladder) or ladder[at + 1] in points or points[min(above)].within(limit_ms):
        return None
    return Trial(point.trial.setting, ladder[at + 1])


def _natural(setting: Setting) -> int:
    """Return the concurrency that keeps every instance busy with a full batch, at least one for each."""
    return setting.instances * min(setting.batch_size, 8)
