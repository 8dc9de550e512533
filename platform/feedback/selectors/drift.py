"""Queries of drift: the features of a service with both shapes."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from django.db.models import Count, Q

from accounts.domain.roles import Owned
from accounts.selectors import owning_teams
from deployments.selectors import service_get
from feedback.domain.drift.features import Floats
from feedback.domain.drift.watch import LEARNED_ROWS, Watch, difference_sentence, stored_watch
from feedback.models import DriftBlock, DriftFeature


@dataclass(frozen=True, slots=True)
class Bin:
    """A bin in words, with its share in percent in the reference and in the present; None before there is one."""

    words: str
    reference_percent: float | None
    present_percent: float | None


@dataclass(frozen=True, slots=True)
class Shapes:
    """A feature as API and page show it.

    Attributes:
        state: "first values", "no shape", "learning", "watched" or "drifted".
        since: when its reference began.
        rows: of the reference, or so far.
        evidence_percent: how far the evidence is on its way to an alarm, by its logarithm.
        sentence: what has moved; of a feature that is learned what is missing.
        canary: a sentence about the canary where its shape is proved to differ from stable's; else empty.
        outliers_percent: of the present, outside of the range or the classes of the first values.
    """

    name: str
    source: str
    kind: str
    state: str
    since: datetime
    alarm_at: datetime | None
    rows: int
    evidence_percent: float
    outliers_percent: float
    sentence: str
    canary: str
    bins: list[Bin]


@dataclass(frozen=True, slots=True)
class Alarms:
    """How many features of a service have drifted; `team` owns its namespace."""

    namespace: str
    service: str
    team: str
    features: int


def drift_shapes(*, namespace: str, name: str) -> list[Shapes]:
    """Return the features of a service, the strongest evidence first; raises NotFound."""
    service = service_get(namespace=namespace, name=name)
    block = DriftBlock.objects.filter(service=service).first()
    rows = list(DriftFeature.objects.filter(service=service).order_by("pk"))
    watched = sum(row.state is not None for row in rows)
    shapes = [_shapes(row, watched, "" if block is None else block.stable) for row in rows]
    return sorted(shapes, key=lambda each: (each.alarm_at is None, -each.evidence_percent))


def drift_alarms() -> Iterator[Alarms]:
    """Yield the services that are watched, with how many of their features have drifted."""
    counted = DriftFeature.objects.values("service__namespace", "service__name")
    rows = list(counted.annotate(drifted=Count("pk", filter=Q(alarm_at__isnull=False))).order_by())
    teams = owning_teams(kind=Owned.NAMESPACE, names=(row["service__namespace"] for row in rows))
    for row in rows:
        namespace = row["service__namespace"]
        yield Alarms(namespace, row["service__name"], teams[namespace], row["drifted"])


def watch_of(row: DriftFeature) -> Watch:
    """Return the state of a feature that has bins."""
    return stored_watch(row.bins or {}, row.since, row.state or {})


def _shapes(row: DriftFeature, watched: int, stable: str) -> Shapes:
    if row.state is None:
        state, sentence = "first values", "its bins are fixed by its first 500 values"
        if row.bins is not None:
            state, sentence = "no shape", "more than 50 different texts or numbers are names, which have no shape"
        return Shapes(row.name, row.source, row.kind, state, row.since, None, 0, 0.0, 0.0, sentence, "", [])
    watch = watch_of(row)
    learned, recent = _percents(watch.learned), _percents(watch.recent)
    words = [watch.bins.words(number) for number in range(watch.bins.size)]
    bins = [Bin(*each) for each in zip(words, learned, recent, strict=True)]
    rows = int(watch.learned.sum())
    state, sentence = "watched", "its shape is that of its reference"
    if watch.reference is None:
        state, sentence = "learning", f"its reference has {rows} rows; it takes a week, and {LEARNED_ROWS} rows"
    elif row.alarm_at is not None:
        state, sentence = "drifted", row.sentence
    return Shapes(
        name=row.name,
        source=row.source,
        kind=row.kind,
        state=state,
        since=row.since,
        alarm_at=row.alarm_at,
        rows=rows,
        evidence_percent=round(watch.evidence_percent(watched), 1),
        outliers_percent=round(100 * watch.bins.outliers(watch.recent), 2),
        sentence=sentence,
        canary=difference_sentence(watch, row.name, stable) if watch.differs(watched) else "",
        bins=bins,
    )


def _percents(counts: Floats) -> list[float | None]:
    total = float(counts.sum())
    if not total:
        return [None] * len(counts)
    return [round(float(each), 2) for each in np.asarray(100 * counts / total)]
