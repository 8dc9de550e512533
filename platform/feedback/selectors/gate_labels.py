"""Labelled answers for the gate of a rollout: sums by side, never rows.

Rows are found by the index of scorer, revision and time. A look counts up to the least that it needs first; the sums
are made only once there is enough for a block, so each score is summed up about once. A block has at most
`MOST_LABELS` of a side, of copied requests `MOST_PAIRS`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, F, FloatField, OuterRef, QuerySet, Subquery, Sum
from django.db.models.fields.json import KeyTextTransform

from deployments.domain.analysis.evidence.labelled import WHOLE, Answered, Asked, Habits, Losses, Sides
from deployments.models import InferenceService
from feedback.domain.scorers import unit_of
from feedback.models import Kept, Score, ServiceScorer

MOST_LABELS = 100_000
MOST_PAIRS = 10_000
_NEWEST = 1000
_MOST_VALUES = 10
_QUANTILE = 0.9
_USUAL_S, _LEAST_S, _MOST_S = 60.0, 1.0, 7 * 86400.0
_STABLE = "stable_loss"


def label_habits(service_id: int, scorer: str, stable: str, before: datetime, parameter: str) -> Habits:
    """Return what is known of a scorer's labels, for requests to the stable revision before a time."""
    row, problem = _scorer(service_id, scorer)
    if row is None:
        return Habits(problem=problem)
    scores = Score.objects.filter(scorer=row, revision=stable, answered_at__lt=before).order_by("-answered_at")
    newest = list(scores.values_list("answered_at", "labelled_at", "loss")[:_NEWEST])
    unit = unit_of(row.kind, row.options)
    losses = [loss for _, _, loss in newest]
    delays = sorted((labelled - answered).total_seconds() for answered, labelled, _ in newest)
    horizon = delays[min(len(delays) - 1, int(_QUANTILE * len(delays)))] if delays else _USUAL_S
    return Habits(
        unit=unit.name,
        scale=unit.scale,
        horizon_s=round(min(max(horizon, _LEAST_S), _MOST_S), 3),
        stable=Losses(len(losses), sum(losses), sum(loss * loss for loss in losses)),
        per_second=_rate([answered for answered, _, _ in newest]),
        values=_values(scores, parameter) if parameter else (),
    )


def labelled_answers(asked: Asked) -> Answered:
    """Return the sums of the labelled answers that a gate asks for."""
    row, problem = _scorer(asked.service_id, asked.scorer)
    if row is None:
        return Answered(problem=problem)
    unit = unit_of(row.kind, row.options)
    found = _of_pairs(row, asked) if asked.is_paired else _of_sides(row, asked)
    return replace(found, unit=unit.name, scale=unit.scale)


def _of_sides(row: ServiceScorer, asked: Asked) -> Answered:
    """Return the sums of both sides' own requests."""
    canary, stable = (_of(row, revision, asked, asked.ended) for revision in (asked.canary, asked.stable))
    so_many = _count(canary, asked.least_canary), _count(stable, asked.least_stable)
    if so_many[0] < asked.least_canary or so_many[1] < asked.least_stable:
        return Answered(*so_many, ended=asked.ended)
    ended = min(asked.ended, *(_end(side, asked.began, MOST_LABELS) or asked.ended for side in (canary, stable)))
    canary, stable = (_of(row, revision, asked, ended) for revision in (asked.canary, asked.stable))
    sums = {
        value: Sides(_losses(canary.filter(**only)), _losses(stable.filter(**only))) for value, only in _parts(asked)
    }
    return Answered(*so_many, sums, ended)


def _of_pairs(row: ServiceScorer, asked: Asked) -> Answered:
    """Return the sums of the requests that both sides answered.

    Where `MOST_PAIRS` labels of the canary have come, the block has the pairs among them, however few.
    """
    end = _end(_of(row, asked.canary, asked, asked.ended), asked.began, MOST_PAIRS)
    ended = asked.ended if end is None else end
    pairs = _with_pairs(_of(row, asked.canary, asked, ended), row, asked)
    so_many = _count(pairs, asked.least_canary)
    if so_many < asked.least_canary and end is None:
        return Answered(so_many, _count(_of(row, asked.stable, asked, ended), asked.least_stable), ended=ended)
    sums = {value: _paired_losses(pairs.filter(**only)) for value, only in _parts(asked)}
    return Answered(so_many, so_many, sums, ended)


def _parts(asked: Asked) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield all answers together and each value of the parameter, with the condition on rows."""
    yield WHOLE, {}
    for value in asked.values:
        yield value, {f"parameters__{asked.parameter}": value}


def _scorer(service_id: int, name: str) -> tuple[ServiceScorer | None, str]:
    """Return the scorer, or None and what to do about that."""
    row = ServiceScorer.objects.filter(service=service_id, name=name).first()
    if row is not None and Kept.objects.filter(service=service_id).exists():
        return row, ""
    service = InferenceService.objects.filter(pk=service_id).first()
    if row is None:
        return None, (
            f"service {service} has no scorer {name}, so its answers cannot be judged; add it with: fairlead feedback "
            f"score {service} {name} --kind accuracy (or another kind)"
        )
    return None, (
        f"nothing is kept of the answers of service {service}, so no label finds one; begin with: fairlead feedback "
        f"keep {service}"
    )


def _of(row: ServiceScorer, revision: str, asked: Asked, ended: float) -> QuerySet[Score]:
    """Return the scores of one side whose labels came within the horizon."""
    began, until = (datetime.fromtimestamp(at, UTC) for at in (asked.began, ended))
    return Score.objects.filter(
        scorer=row,
        revision=revision,
        answered_at__gte=began,
        answered_at__lt=until,
        labelled_at__lte=F("answered_at") + timedelta(seconds=asked.horizon_s),
    )


def _with_pairs(canary: QuerySet[Score], row: ServiceScorer, asked: Asked) -> QuerySet[Score]:
    """Return the canary's scores for requests that stable answered too, each with stable's loss."""
    other = Score.objects.filter(
        scorer=row,
        request_id=OuterRef("request_id"),
        revision=asked.stable,
        labelled_at__lte=F("answered_at") + timedelta(seconds=asked.horizon_s),
    )
    pairs = canary.annotate(**{_STABLE: Subquery(other.values("loss")[:1], output_field=FloatField())})
    return pairs.filter(**{f"{_STABLE}__isnull": False})


def _count(scores: QuerySet[Score], least: int) -> int:
    return len(scores.values_list("pk")[:least])


def _end(scores: QuerySet[Score], began: float, most: int) -> float | None:
    """Return the time of the first score that is too many for one look; None where all fit."""
    beyond = scores.order_by("answered_at").values_list("answered_at", flat=True)[most : most + 1]
    found = next(iter(beyond), None)
    return found.timestamp() if found is not None and found.timestamp() > began else None


def _losses(scores: QuerySet[Score]) -> Losses:
    sums: Mapping[str, Any] = scores.aggregate(
        labels=Count("pk"), of_loss=Sum("loss"), of_squares=Sum(F("loss") * F("loss"), output_field=FloatField())
    )
    return Losses(sums["labels"], sums["of_loss"] or 0.0, sums["of_squares"] or 0.0)


def _paired_losses(pairs: QuerySet[Score]) -> Sides:
    # The slice makes the pairs a table of their own, so that stable's loss of each is looked up once.
    sums: Mapping[str, Any] = pairs.values("loss", _STABLE)[: 2 * MOST_PAIRS].aggregate(
        labels=Count("loss"),
        **{
            f"{name}_of_{side}": Sum(of, output_field=FloatField())
            for side, column in (("canary", "loss"), ("stable", _STABLE))
            for name, of in (("loss", F(column)), ("squares", F(column) * F(column)))
        },
    )
    canary, stable = (
        Losses(sums["labels"], sums[f"loss_of_{side}"] or 0.0, sums[f"squares_of_{side}"] or 0.0)
        for side in ("canary", "stable")
    )
    return Sides(canary, stable)


def _rate(answered: list[datetime]) -> float | None:
    """Return labelled answers a second; newest first."""
    seconds = (answered[0] - answered[-1]).total_seconds() if len(answered) > 1 else 0.0
    return (len(answered) - 1) / seconds if seconds > 0 else None


def _values(scores: QuerySet[Score], parameter: str) -> tuple[str, ...]:
    """Return the most frequent values of a parameter among the newest answers."""
    return tuple(value for value, _ in sorted(_counted(scores, parameter), key=lambda each: (-each[1], each[0])))[
        :_MOST_VALUES
    ]


def _counted(scores: QuerySet[Score], parameter: str) -> Iterator[tuple[str, int]]:
    newest = scores.annotate(value=KeyTextTransform(parameter, "parameters")).values_list("value", flat=True)[:_NEWEST]
    values = [value for value in newest if value is not None]
    return ((value, values.count(value)) for value in dict.fromkeys(values))
