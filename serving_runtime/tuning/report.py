"""Tuning report: as JSON (`fairlead.tune/v1`) and as text. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from serving_runtime.tuning.measurement import Measurement, Point, Seen, Trial
from serving_runtime.tuning.search import choose, frontier
from serving_runtime.tuning.space import Space

SCHEMA = "fairlead.tune/v1"
PROGRESS_SCHEMA = "fairlead.tune-progress/v1"


def report(space: Space, limit_ms: float, measured: Sequence[Measurement]) -> dict[str, Any]:
    """Return the search's document, without the machine and the chosen point's `config`.

    `chosen` is null where no setting meets the limit; `reason` then says how near one came.
    """
    seen = Seen.of(measured)
    points = sorted(seen.points.values(), key=lambda point: (point.load.p99_ms, -point.load.requests_per_s))
    chosen = choose(space, limit_ms, measured)
    baseline = next((point for point in seen.best(limit_ms) if point.trial.setting == space.baseline), None)
    return {
        "schema": SCHEMA,
        "max_latency_p99_ms": limit_ms,
        "measurements": len(measured),
        "chosen": point_json(chosen),
        "baseline": point_json(baseline),
        "reason": "" if chosen is not None else _why_none(limit_ms, points, seen),
        "frontier": [point_json(point) for point in frontier(points)],
        "points": [point_json(point) for point in points],
        "failed": [{**asdict(setting), "reason": reason} for setting, reason in sorted(seen.failed.items())],
    }


def point_json(point: Point | None) -> dict[str, Any] | None:
    """Return a point as one flat object; null for None."""
    if point is None:
        return None
    return {
        **asdict(point.trial.setting),
        "concurrency": point.trial.concurrency,
        "requests_per_s": round(point.load.requests_per_s, 1),
        "p50_ms": round(point.load.p50_ms, 3),
        "p99_ms": round(point.load.p99_ms, 3),
        "repeats": point.repeats,
    }


def progress(limit_ms: float, measured: Sequence[Measurement], spent: float) -> dict[str, Any]:
    """Return the progress: the used share of the budget, the last measurement, and the best within the limit."""
    last = measured[-1]
    best = next(iter(Seen.of(measured).best(limit_ms)), None)
    seen = None if last.load is None else point_json(Point(last.trial, last.load, 1))
    return {
        "schema": PROGRESS_SCHEMA,
        "spent": round(min(1.0, spent), 3),
        "measurements": len(measured),
        "last": seen,
        "reason": last.reason,
        "best": point_json(best),
    }


def progress_line(measured: Sequence[Measurement], spent: float) -> str:
    """Return the last measurement as a line."""
    last = measured[-1]
    found = last.reason if last.load is None else f"{last.load.requests_per_s:,.0f}/s, p99 {last.load.p99_ms:.2f} ms"
    return f"{min(100, round(100 * spent)):>3} %  {_asked(last.trial)}: {found}"


def lines(document: Mapping[str, Any]) -> list[str]:
    """Return the document's frontier as a table, and the chosen setting, as text."""
    chosen, baseline = document["chosen"], document["baseline"]
    heads = ("p99 ms", "p50 ms", "requests/s", "instances", "batch", "delay us", "threads", "at once", "")
    keys = ("instances", "batch_size", "queue_delay_us", "intra_op_threads", "concurrency")
    shown = list({_trial(each): each for each in (*document["frontier"], chosen, baseline) if each}.values())
    rows = [
        (
            f"{point['p99_ms']:.2f}",
            f"{point['p50_ms']:.2f}",
            f"{point['requests_per_s']:,.0f}",
            *(str(point[key]) for key in keys),
            ", ".join(
                word for word, it in (("chosen", chosen), ("as it is", baseline)) if it and _trial(it) == _trial(point)
            ),
        )
        for point in sorted(shown, key=lambda point: point["p99_ms"])
    ]
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    table = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)
    ]
    return [*table, "", conclusion(document)]


def conclusion(document: Mapping[str, Any]) -> str:
    """Return, in a sentence, the chosen setting and its improvement."""
    chosen, baseline, limit = document["chosen"], document["baseline"], document["max_latency_p99_ms"]
    if chosen is None:
        return str(document["reason"])
    found = f"{chosen['requests_per_s']:,.0f} requests a second with a p99 of {chosen['p99_ms']:.2f} ms"
    if baseline is None:
        return f"Chosen: {found}; as it is the model does not keep p99 under {limit:g} ms."
    if _setting(chosen) == _setting(baseline):
        return f"The configuration stays as it is: {found}, and nothing that was tried is clearly faster."
    ratio = chosen["requests_per_s"] / baseline["requests_per_s"]
    return f"Chosen: {found}, {ratio:.2f} times what the configuration does as it is."


def _why_none(limit_ms: float, points: Sequence[Point], seen: Seen) -> str:
    if not points:
        return f"nothing could be measured: {next(iter(seen.failed.values()), 'the budget was too short')}"
    nearest = points[0]
    return (
        f"no setting keeps p99 under {limit_ms:g} ms; the lowest is {nearest.load.p99_ms:.2f} ms, of "
        f"{_asked(nearest.trial)}; allow more latency, or run on a faster machine"
    )


def _asked(trial: Trial) -> str:
    return f"{trial.setting}, {trial.concurrency} at once"


def _setting(point: Mapping[str, Any]) -> tuple[Any, ...]:
    return point["instances"], point["batch_size"], point["queue_delay_us"], point["intra_op_threads"]


def _trial(point: Mapping[str, Any]) -> tuple[Any, ...]:
    return *_setting(point), point["concurrency"]
