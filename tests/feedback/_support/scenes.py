"""A service with kept answers, labels, scorers and scores, written as the join writes them."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from deployments.models import InferenceService
from feedback.models import Answer, HourlyQuality, Kept, Label, Score, ServiceScorer
from feedback.selectors.answers import sealed_values

DIGIT = [round(max(0.0, 16 - 3 * abs(x - 3.5) - (y % 3)), 3) for y in range(8) for x in range(8)]
"""Pixels of a picture of 8 by 8."""


@dataclass(frozen=True, slots=True)
class Given:
    """One answer, with its label where one came."""

    request_id: str
    revision: str
    at: datetime
    top: list[Any] = field(default_factory=lambda: [[3, 0.9]])
    label: object = 3
    loss: float = 0.0
    delay_s: float = 40.0
    parameters: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] | None = None


def kept(service: InferenceService, now: datetime, **fields: Any) -> Kept:
    """Return what is kept of a service: all answers, for 30 days."""
    of = {"share_percent": 100.0, "days": 30, "max_rows": 1_000_000, "max_bytes": 2**30}
    of |= {"created_at": now, "created_by": "alice"}
    return Kept.objects.update_or_create(service=service, defaults=of | fields)[0]


def scorer(
    service: InferenceService, now: datetime, name: str = "right", kind: str = "accuracy", **options: Any
) -> Any:
    """Return a new scorer of a service."""
    return ServiceScorer.objects.create(
        service=service, name=name, kind=kind, options=options, created_at=now, created_by="alice"
    )


def answered(service: InferenceService, scorers: Iterable[ServiceScorer], given: Iterable[Given]) -> None:
    """Store answers with labels, and their scores by each scorer."""
    given = list(given)
    Answer.objects.bulk_create(
        Answer(
            service=service,
            request_id=each.request_id,
            revision=each.revision,
            version=int(each.revision[-5:]),
            at=each.at,
            top=each.top,
            sealed=sealed(each.values),
            parameters=dict(each.parameters),
            bytes=200,
        )
        for each in given
    )
    labels = {each.request_id: each for each in given if each.label is not None}
    Label.objects.bulk_create(
        Label(
            service=service,
            request_id=each.request_id,
            value=each.label,
            given_at=each.at,
            given_by="alice",
            received_at=each.at + timedelta(seconds=each.delay_s),
            joined_at=each.at + timedelta(seconds=each.delay_s + 2),
        )
        for each in labels.values()
    )
    for one in scorers:
        scored(one, [each for each in given if each.label is not None])
    Kept.objects.filter(service=service).update(rows=F("rows") + len(given), bytes=F("bytes") + 200 * len(given))


def scored(of: ServiceScorer, given: Iterable[Given]) -> None:
    """Store scores by one scorer, and the sums of their hours."""
    given = list(given)
    Score.objects.bulk_create(
        Score(
            scorer=of,
            request_id=each.request_id,
            revision=each.revision,
            answered_at=each.at,
            labelled_at=each.at + timedelta(seconds=each.delay_s),
            scored_at=each.at + timedelta(seconds=each.delay_s + 2),
            loss=each.loss,
            parameters=dict(each.parameters),
        )
        for each in given
    )
    sums: dict[tuple[str, datetime], list[float]] = {}
    for each in given:
        row = sums.setdefault((each.revision, each.at.replace(minute=0, second=0, microsecond=0)), [0.0] * 4)
        for index, value in enumerate((1, each.loss, each.loss**2, each.delay_s)):
            row[index] += value
    HourlyQuality.objects.bulk_create(
        HourlyQuality(
            scorer=of, revision=revision, hour=hour, scores=int(row[0]), loss=row[1], squares=row[2], delay_s=row[3]
        )
        for (revision, hour), row in sums.items()
    )


def sealed(values: Mapping[str, Any] | None) -> bytes:
    """Return the encrypted content of an answer; empty for None."""
    return b"" if values is None else sealed_values(json.dumps(values).encode())


def tensors(**values: list[Any]) -> dict[str, Any]:
    """Return V2 tensors of one row of floats, by name."""
    return {name: {"datatype": "FP32", "shape": [1, len(data)], "data": data} for name, data in values.items()}
