"""Quality of a service's answers by scorer and revision, the delay of labels, and the worst answers.

`HourlyQuality` has the sums of every hour; slices, quantiles of the delay and the worst answers come from the newest
`MOST_SCORES` scores, found by the hours that hold them, so that a query's work is bounded.
"""

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from common.errors import InvalidInput, NotFound, Unavailable
from deployments.domain.service_state.desired import Role
from deployments.models import Revision
from feedback.domain.quality import (
    NOTHING,
    Scored,
    Series,
    Slice,
    Sums,
    quantiles,
    series_of,
    slices_of,
    total_of,
)
from feedback.domain.scorers import Unit, unit_of
from feedback.models import Answer, HourlyQuality, Label, Score, ServiceScorer
from feedback.selectors.answers import answer_values
from feedback.selectors.labels import FeedbackSummary

DAYS, MOST_DAYS = 7, 90
MOST_SCORES = 50_000
MOST_REVISIONS = 8


@dataclass(frozen=True, slots=True)
class RevisionQuality:
    """Quality of one revision.

    Attributes:
        role: empty for a revision that is deleted; `version` is 0 then.
        hours: sums by the hour of the requests, oldest first.
    """

    name: str
    role: str
    version: int
    hours: Series = ()
    total: Sums = NOTHING


@dataclass(frozen=True, slots=True)
class ScorerQuality:
    """Quality by one scorer; revisions begin with stable and canary, then the newest."""

    scorer: ServiceScorer
    unit: Unit
    revisions: tuple[RevisionQuality, ...]

    def of(self, role: Role) -> RevisionQuality | None:
        """Return the revision with a role."""
        return next((each for each in self.revisions if each.role == role), None)


@dataclass(frozen=True, slots=True)
class Recent:
    """The newest scores of a scorer.

    Attributes:
        minutes: sums by revision and minute of the requests.
        delays_s: median, 90th and 99th percentile of the seconds from a request to its label; empty without scores.
        worst: (request id, revision, loss), the largest loss first, then the newest.
    """

    scores: int = 0
    minutes: Mapping[str, Series] = field(default_factory=dict)
    delays_s: tuple[float, ...] = ()
    slices: Sequence[Slice] = ()
    worst: Sequence[tuple[str, str, float]] = ()


@dataclass(frozen=True, slots=True)
class WorstAnswer:
    """A kept answer with its label.

    Attributes:
        outputs, inputs: V2 tensors by name, where they are kept; `problem` says why they are
            not all there.
    """

    request_id: str
    revision: str
    version: int
    at: datetime
    loss: float
    label: object
    top: list[Any]
    parameters: Mapping[str, str]
    outputs: Mapping[str, Any] = field(default_factory=dict)
    inputs: Mapping[str, Any] = field(default_factory=dict)
    problem: str = ""


def labelled_percent(summary: FeedbackSummary) -> float | None:
    """Return the share of kept answers whose label came; None without answers.

    A request that was copied has two answers and one label.
    """
    if summary.answers is None or not summary.answers.rows:
        return None
    return min(100.0, 100 * summary.joined / summary.answers.rows)


def scorers_of(service_id: int) -> list[ServiceScorer]:
    """Return a service's scorers by name."""
    return list(ServiceScorer.objects.filter(service=service_id).order_by("name"))


def quality_of(scorers: Sequence[ServiceScorer], *, days: int, now: datetime) -> list[ScorerQuality]:
    """Return the quality by each scorer of one service in the last days, in at most two queries.

    Raises:
        InvalidInput: days is not 1 to `MOST_DAYS`.
    """
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"days is {days}; expected 1 to {MOST_DAYS}", field="days")
    if not scorers:
        return []
    rows = HourlyQuality.objects.filter(scorer__in=scorers, hour__gte=now - timedelta(days=days), scores__gt=0)
    hours: dict[int, dict[str, list[tuple[datetime, Sums]]]] = defaultdict(lambda: defaultdict(list))
    for scorer, revision, hour, *sums in rows.order_by("hour").values_list(
        "scorer", "revision", "hour", "scores", "loss", "squares", "delay_s"
    ):
        hours[scorer][revision].append((hour, Sums(*sums)))
    named = {revision for of in hours.values() for revision in of}
    known = _revisions(scorers[0].service_id, named) if named else {}
    return [
        ScorerQuality(
            scorer,
            unit_of(scorer.kind, scorer.options),
            tuple(
                RevisionQuality(name, *known.get(name, ("", 0)), of, total_of(of))
                for name, of in sorted(hours[scorer.pk].items(), key=lambda each: _order(each[0], known))
            )[:MOST_REVISIONS],
        )
        for scorer in scorers
    ]


def recent_of(quality: ScorerQuality, *, most: int | None = None, most_worst: int = 0) -> Recent:
    """Return slices, delays and the worst of the newest scores of a scorer's quality, in one query.

    Args:
        most: how many scores to read; `MOST_SCORES` for None.
    """
    most = most or MOST_SCORES
    named = [each.name for each in quality.revisions]
    if not named:
        return Recent()
    rows = (
        Score.objects.filter(
            scorer=quality.scorer, revision__in=named, answered_at__gte=_since(quality.revisions, most)
        )
        .order_by("-answered_at")
        .values_list("request_id", "revision", "loss", "answered_at", "labelled_at", "parameters")[:most]
    )
    scored, keys = [], []
    for request_id, revision, loss, answered_at, labelled_at, parameters in rows:
        delay_s = (labelled_at - answered_at).total_seconds()
        scored.append(Scored(revision, answered_at, loss, delay_s, parameters))
        keys.append((request_id, revision, loss))
    stable, canary = quality.of(Role.STABLE), quality.of(Role.CANARY)
    return Recent(
        len(scored),
        series_of(scored, timedelta(minutes=1)),
        quantiles([each.delay_s for each in scored]),
        slices_of(scored, baseline=stable.name if stable else "", candidate=canary.name if canary else ""),
        sorted((key for key in keys if key[2] > 0), key=lambda key: -key[2])[:most_worst],
    )


def worst_answers(service_id: int, worst: Sequence[tuple[str, str, float]]) -> list[WorstAnswer]:
    """Return the kept answers with their labels, in the order given and without deleted ones, in two queries."""
    if not worst:
        return []
    ids = [request_id for request_id, _, _ in worst]
    answers = {
        (each.request_id, each.revision): each for each in Answer.objects.filter(service=service_id, request_id__in=ids)
    }
    labels = dict(Label.objects.filter(service=service_id, request_id__in=ids).values_list("request_id", "value"))
    return [
        _worst(answers[request_id, revision], loss, labels.get(request_id))
        for request_id, revision, loss in worst
        if (request_id, revision) in answers
    ]


def scorer_named(scorers: Iterable[ServiceScorer], name: str) -> ServiceScorer:
    """Return the scorer with a name; raises NotFound."""
    names = []
    for each in scorers:
        if each.name == name:
            return each
        names.append(each.name)
    has = f"it has {', '.join(names)}" if names else "it has no scorers"
    raise NotFound(f"the service has no scorer {name[:63]!r}; {has}")


def _worst(answer: Answer, loss: float, label: object) -> WorstAnswer:
    problem: str = ""
    values: Mapping[str, Any] = {}
    try:
        values = answer_values(answer)
        problem = values.get("left_out", "")
    except Unavailable as error:
        problem = error.message
    except (zlib.error, ValueError):
        problem = "the stored content is damaged"
    return WorstAnswer(
        answer.request_id,
        answer.revision,
        answer.version,
        answer.at,
        loss,
        label,
        answer.top,
        answer.parameters,
        values.get("outputs") or {},
        values.get("inputs") or {},
        problem,
    )


def _revisions(service_id: int, names: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Return role and version of revisions that are there, by name."""
    rows = Revision.objects.filter(service=service_id, name__in=names)
    return {name: (role, number) for name, role, number in rows.values_list("name", "role", "model_version__number")}


def _order(name: str, known: Mapping[str, tuple[str, int]]) -> tuple[int, list[int]]:
    """Return a sort key: stable, canary, then the newest."""
    role = known.get(name, ("", 0))[0]
    rank = {Role.STABLE.value: 0, Role.CANARY.value: 1}.get(role, 2)
    return rank, [-ord(character) for character in name]


def _since(revisions: Iterable[RevisionQuality], most: int) -> datetime:
    """Return the hour from which on there are as many scores, or the first hour."""
    hours = sorted(((hour, sums.scores) for each in revisions for hour, sums in each.hours), reverse=True)
    seen = 0
    for hour, scores in hours:
        seen += scores
        if seen >= most:
            return hour
    return hours[-1][0]
