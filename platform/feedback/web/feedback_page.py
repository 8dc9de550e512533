"""Feedback page of a service as values, and the section of the service's own page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.utils import timezone

from common import durations
from common.errors import InvalidInput
from common.tensors import Tensor
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService
from deployments.web.try_page import Shown, shown
from feedback.domain.quality import Slice, Sums
from feedback.domain.scorers import Unit
from feedback.models import ServiceScorer
from feedback.selectors import quality as qualities
from feedback.selectors.answers import problem_of
from feedback.selectors.labels import feedback_summary
from feedback.selectors.quality import Recent, ScorerQuality, WorstAnswer
from feedback.web import quality_plot
from feedback.web.input_pictures import picture_of
from integrations.v2 import tensors

_LIVE = (Role.STABLE, Role.CANARY)
PERIODS = (1, 7, 30)
WORST_SHOWN = 8
_TOPS_SHOWN = 4
_REGRESSIONS = frozenset({"absoluteError", "squaredError"})


@dataclass(frozen=True, slots=True)
class Shares:
    """A mean as shown: `interval` is empty where there is too little for one."""

    scores: int
    mean: str
    interval: str
    delay: str


@dataclass(frozen=True, slots=True)
class RevisionRow:
    """A revision in the table of one scorer."""

    name: str
    role: str
    version: int
    seen: Shares


@dataclass(frozen=True, slots=True)
class ScorerRow:
    """A scorer with the quality of stable and canary; each is None without scores."""

    scorer: ServiceScorer
    unit: str
    stable: Shares | None
    canary: Shares | None
    scores: int


@dataclass(frozen=True, slots=True)
class SliceRow:
    """A slice in the table: a value of a parameter, with each of the revisions shown by its label."""

    parameter: str
    value: str
    seen: Sequence[tuple[str, Shares]]
    is_worse: bool


@dataclass(frozen=True, slots=True)
class WorstRow:
    """One of the worst answers, with its values where they are kept; `loss` is empty where all rows are wrong."""

    answer: WorstAnswer
    loss: str
    label: str
    answered: str
    pictures: Sequence[tuple[str, str]]
    outputs: Sequence[Shown]
    inputs: Sequence[Shown]


def feedback_context(service: InferenceService, *, scorer: str, days: int, sees_worst: bool) -> Mapping[str, Any]:
    """Return the page's context; raises NotFound for an unknown scorer.

    Args:
        scorer: the one whose quality is shown in detail; empty for the first.
    """
    summary = feedback_summary(service=service)
    scorers = summary.scorers
    found = qualities.quality_of(scorers, days=days, now=timezone.now())
    chosen = qualities.scorer_named(scorers, scorer) if scorer else next(iter(scorers), None)
    detail = next((each for each in found if each.scorer == chosen), None)
    recent = qualities.recent_of(detail, most_worst=WORST_SHOWN if sees_worst else 0) if detail else Recent()
    shown_revisions = (
        [each for each in detail.revisions if each.role in _LIVE] or detail.revisions[:1] if detail else ()
    )
    columns = [(each.name, each.role.capitalize() or each.name) for each in shown_revisions]
    return {
        "summary": summary,
        "labelled_percent": qualities.labelled_percent(summary),
        "full": problem_of(summary.answers) if summary.answers else "",
        "rows": [_scorer_row(each) for each in found],
        "chosen": chosen,
        "unit": detail.unit.name if detail else "",
        "revisions": _revision_rows(detail) if detail else [],
        "drawing": _drawing(detail, recent) if detail else None,
        "recent": recent,
        "delays": [_duration(each) for each in recent.delays_s],
        "columns": [label for _, label in columns],
        "slices": [_slice_row(each, columns, detail.unit) for each in recent.slices] if detail else [],
        "most_scores": qualities.MOST_SCORES,
        "worst": _worst_rows(service.pk, detail, recent) if detail and sees_worst else [],
        "days": days,
        "periods": PERIODS,
    }


def of_service_page(service_id: int) -> Mapping[str, Any]:
    """Return the context of the section of feedback on a service's page: each scorer, in the last days."""
    scorers = qualities.scorers_of(service_id)
    found = qualities.quality_of(scorers, days=qualities.DAYS, now=timezone.now())
    return {"scorers": [_scorer_row(each) for each in found], "scorers_days": qualities.DAYS}


def _scorer_row(each: ScorerQuality) -> ScorerRow:
    stable, canary = each.of(Role.STABLE), each.of(Role.CANARY)
    return ScorerRow(
        each.scorer,
        each.unit.name,
        _shares(stable.total, each.unit) if stable else None,
        _shares(canary.total, each.unit) if canary else None,
        sum(revision.total.scores for revision in each.revisions),
    )


def _revision_rows(found: ScorerQuality) -> list[RevisionRow]:
    return [
        RevisionRow(each.name, each.role, each.version, _shares(each.total, found.unit)) for each in found.revisions
    ]


def _shares(sums: Sums, unit: Unit) -> Shares:
    mean = None if sums.mean is None else sums.mean * unit.scale
    ends = sums.interval()
    interval = " to ".join(quality_plot.shown(end * unit.scale, unit) for end in ends) if ends else ""
    return Shares(sums.scores, quality_plot.shown(mean, unit), interval, _duration(sums.mean_delay_s))


def _duration(seconds: float | None) -> str:
    """Return `3m31s`, and `0.8s` for a short one; a dash for None."""
    if seconds is None:
        return "\N{EN DASH}"
    return durations.render(timedelta(seconds=round(seconds, 1 if seconds < 10 else 0)))


def _drawing(found: ScorerQuality, recent: Recent) -> quality_plot.Drawing | None:
    scores = sum(each.total.scores for each in found.revisions)
    has_minutes = bool(recent.minutes) and scores == recent.scores
    series = [
        (
            each.role if each.role in _LIVE else each.name,
            each.role,
            recent.minutes.get(each.name, ()) if has_minutes else each.hours,
        )
        for each in found.revisions
    ]
    least = timedelta(minutes=1) if has_minutes else timedelta(hours=1)
    return quality_plot.drawing(series, found.unit, each=least)


def _slice_row(each: Slice, columns: Sequence[tuple[str, str]], unit: Unit) -> SliceRow:
    seen = [(label, _shares(each.of.get(name, Sums()), unit)) for name, label in columns]
    return SliceRow(each.parameter, each.value, seen, each.is_worse)


def _worst_rows(service_id: int, found: ScorerQuality, recent: Recent) -> list[WorstRow]:
    return [_worst_row(each, found) for each in qualities.worst_answers(service_id, recent.worst)]


def _worst_row(worst: WorstAnswer, found: ScorerQuality) -> WorstRow:
    is_wholly_wrong = worst.loss == 1 and found.unit.name.startswith("percent")
    inputs = _read(worst.inputs)
    return WorstRow(
        worst,
        "" if is_wholly_wrong else quality_plot.shown(worst.loss * found.unit.scale, found.unit),
        _label_text(worst.label),
        _answer_text(worst.top, found.scorer.kind),
        [(name, address) for name, tensor in inputs.items() if (address := picture_of(name, tensor))],
        shown(_read(worst.outputs)),
        shown(inputs),
    )


def _read(values: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return stored tensors by name, without what cannot be read."""
    found: dict[str, Tensor] = {}
    for name, item in values.items():
        fields = item if isinstance(item, Mapping) else {}
        try:
            found |= tensors.outputs_of({"outputs": [{**fields, "name": name}]})
        except InvalidInput:
            continue
    return found


def _label_text(label: object) -> str:
    """Return a label as text, without the end of a long one."""
    if isinstance(label, list):
        more = ", …" if len(label) > _TOPS_SHOWN else ""
        return ", ".join(str(each)[:80] for each in label[:_TOPS_SHOWN]) + more
    return "" if label is None else str(label)[:200]


def _answer_text(top: Sequence[Any], kind: str) -> str:
    """Return the class of each row, `8 (0.93)` with its score where it has one; the value of a regression."""
    more = ", …" if len(top) > _TOPS_SHOWN else ""
    return ", ".join(_row_text(row, kind) for row in top[:_TOPS_SHOWN]) + more


def _row_text(row: Sequence[Any], kind: str) -> str:
    named, score = (*row, None, None)[:2]
    number = "" if score is None else f"{score:.3g}"
    if kind in _REGRESSIONS:
        return number
    has_score = number and not isinstance(named, str) and named != score
    return f"{named} ({number})" if has_score else str(named)[:80]
