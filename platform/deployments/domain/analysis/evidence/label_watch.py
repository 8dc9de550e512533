"""Labelled answers of one scorer, watched from look to look and from step to step of an attempt. Pure.

The unit of the evidence is a block of time of *requests*: the answers given in [start, end) whose labels came within
the horizon. The horizon is the same for both sides, so that a delay that changes with time favours neither, and stays
for the attempt. A block closes once the horizon and `JOIN_S` have passed since its end and it has the least labels of
both sides, else it grows; that depends on the clock and on counts, never on losses. Blocks do not overlap, and a label
counts in one of them at most, once.

A step that begins does not end the evidence of the one before, whose labels may still come: its last requests wait as a
span of their own, so that no block has requests of two weights.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from deployments.domain.analysis.evidence.blocks import LEAST_CANARY, LEAST_S, LEAST_STABLE
from deployments.domain.analysis.evidence.labelled import WHOLE, Answered, Habits, Losses, Sides

JOIN_S = 15.0
"""A label is joined with its answer within that time."""


@dataclass(frozen=True, slots=True)
class Span:
    """Requests of a time that are in no block yet; `ends` is None for those of the present step."""

    start: float
    ends: float | None = None
    is_paired: bool = False

    def ready(self, horizon_s: float, now: float) -> float:
        """Return until when its requests can have no further label that counts."""
        settled = now - horizon_s - JOIN_S
        return settled if self.ends is None else min(self.ends, settled)


@dataclass(frozen=True, slots=True)
class Watch:
    """What is known of one scorer's labels in the present step of an attempt.

    Attributes:
        began: when the step began; `seen_at` is the last look.
        now: the requests of the present step that are in no block yet.
        waiting: those of steps before.
        habits: fixed at the attempt's first look; None before it.
        before: stable's labels so far, by value of the parameter, from which bets on graded losses are bounded.
        sums: labelled answers in the step's closed blocks, by value of the parameter.
        seen_canary, seen_stable: labels in the open block, counted up to the least it needs.
        is_graded: losses other than 0 and 1 have been seen.
        problem: what is missing, and what to do; empty for nothing.
    """

    began: float
    seen_at: float
    now: Span
    waiting: tuple[Span, ...] = ()
    habits: Habits | None = None
    before: Mapping[str, Losses] = field(default_factory=dict)
    sums: Mapping[str, Sides] = field(default_factory=dict)
    seen_canary: int = 0
    seen_stable: int = 0
    is_graded: bool = False
    problem: str = ""

    @property
    def values(self) -> tuple[str, ...]:
        """Return all labels together, and the values of the parameter that are judged apart."""
        return (WHOLE, *(() if self.habits is None else self.habits.values))

    def of(self, value: str = WHOLE) -> Sides:
        """Return the labelled answers in the step's closed blocks."""
        return self.sums.get(value, Sides())


@dataclass(frozen=True, slots=True)
class LabelBlock:
    """A closed block: its labelled answers by value of the parameter, and what was known of stable before it."""

    sums: Mapping[str, Sides]
    before: Mapping[str, Losses]
    is_graded: bool


def begin(at: float, before: Watch | None = None) -> Watch:
    """Return the watch of a step that begins; what is open of the step before waits."""
    if before is None:
        return Watch(at, at, Span(at))
    left = replace(before.now, ends=before.seen_at)
    waiting = (*before.waiting, left) if before.seen_at > left.start else before.waiting
    return replace(
        before, began=at, seen_at=at, now=Span(at), waiting=waiting, sums={}, seen_canary=0, seen_stable=0, problem=""
    )


def with_habits(watch: Watch, habits: Habits) -> Watch:
    """Return the watch of an attempt whose first look found these habits."""
    if habits.problem:
        return replace(watch, problem=habits.problem)
    return replace(watch, habits=habits, before={WHOLE: habits.stable}, is_graded=habits.is_graded, problem="")


def open_spans(watch: Watch, now: float, *, is_paired: bool) -> Iterator[tuple[Span, float]]:
    """Yield each span that may close a block now, with the end of that block."""
    if watch.habits is None:
        return
    for span in (*watch.waiting, replace(watch.now, is_paired=is_paired)):
        ready = span.ready(watch.habits.horizon_s, now)
        if ready - span.start >= LEAST_S or ready == span.ends:
            yield span, ready


def after_look(watch: Watch, span: Span, found: Answered) -> tuple[Watch, LabelBlock | None]:
    """Return the watch after a look at one span, and the block that it closes; None while the block grows.

    Of a step before, what is too little for a block at its end belongs to none.
    """
    assert watch.habits is not None  # noqa: S101 - else no span is open
    problem = found.problem or _changed(watch.habits, found)
    is_own = span.ends is None
    if problem:
        return replace(watch, problem=problem), None
    if not found.sums:
        if is_own:
            watch = replace(watch, seen_canary=found.canary, seen_stable=found.stable, now=span)
        elif found.ended == span.ends:
            watch = replace(watch, waiting=tuple(each for each in watch.waiting if each.start != span.start))
        return replace(watch, problem=""), None
    block = LabelBlock(found.sums, watch.before, watch.is_graded)
    names = {*watch.before, *found.sums}
    before = {
        each: watch.before.get(each, Losses()).plus(found.sums.get(each, Sides()).stable) for each in sorted(names)
    }
    is_graded = watch.is_graded or any(
        side.is_graded for both in found.sums.values() for side in (both.canary, both.stable)
    )
    watch = replace(watch, before=before, is_graded=is_graded, problem="")
    left = replace(span, start=found.ended)
    if is_own:
        sums = {each: watch.of(each).plus(found.sums.get(each, Sides())) for each in watch.values}
        return replace(watch, now=left, sums=sums, seen_canary=0, seen_stable=0), block
    rest = (left,) if span.ends is not None and found.ended < span.ends else ()
    waiting = (*(each for each in watch.waiting if each.start != span.start), *rest)
    return replace(watch, waiting=tuple(sorted(waiting, key=lambda each: each.start))), block


def after_looks(watch: Watch, now: float) -> Watch:
    """Return the watch once all spans were looked at."""
    return replace(watch, seen_at=now)


def least(*, is_paired: bool) -> tuple[int, int]:
    """Return the labels of the canary and of stable that a block needs."""
    return LEAST_CANARY, LEAST_CANARY if is_paired else LEAST_STABLE


def _changed(habits: Habits, found: Answered) -> str:
    if (found.unit, found.scale) == (habits.unit, habits.scale):
        return ""
    return (
        "the scorer was changed during the rollout, and its losses do not compare with those before; retry the rollout "
        "to begin with it as it is now"
    )


def watch_json(watch: Watch) -> dict[str, Any]:
    """Return the watch as JSON, which `stored_watch` reads back."""
    return asdict(watch)


def stored_watch(value: Mapping[str, Any]) -> Watch:
    """Return the watch from the JSON of `watch_json`."""
    fields = dict(value)
    habits = fields["habits"]
    if habits is not None:
        habits = Habits(**{**habits, "stable": Losses(**habits["stable"]), "values": tuple(habits["values"])})
    sums = {name: Sides(Losses(**both["canary"]), Losses(**both["stable"])) for name, both in fields["sums"].items()}
    return Watch(
        **{
            **fields,
            "now": Span(**fields["now"]),
            "waiting": tuple(Span(**each) for each in fields["waiting"]),
            "habits": habits,
            "before": {name: Losses(**each) for name, each in fields["before"].items()},
            "sums": sums,
        }
    )
