"""Features of a service in each state of drift, without requests."""

from datetime import datetime, timedelta

import numpy as np

from deployments.models import InferenceService
from feedback.domain.drift.features import Kind, Source
from feedback.domain.drift.sketch import bins_of
from feedback.domain.drift.watch import Watch, begun, sentence_of, watch_json, with_block, with_present
from feedback.models import DriftFeature

STABLE, CANARY = "digits-00001", "digits-00002"


def drifted(service: InferenceService, now: datetime) -> list[DriftFeature]:
    """Return a feature that has drifted, of which a canary differs too, and one of each other state."""
    random = np.random.default_rng(4)
    classes = bins_of(Kind.CLASS, [str(number % 10) for number in range(500)])
    numbers = bins_of(Kind.NUMBER, random.normal(size=500).tolist())
    if classes is None or numbers is None:
        raise AssertionError("values without a shape")
    even, often = np.array([0.1] * 10 + [0]), np.array([0.07] * 3 + [0.37] + [0.07] * 6 + [0])
    learning = begun(classes, now - timedelta(days=30))
    for _ in range(20):
        learning = with_block(learning, random.multinomial(200, even).astype(float), None, "", now - timedelta(days=30))
    watched = with_present(learning, learning.learned, now - timedelta(days=20)) or learning
    moved = watched
    for _ in range(12):
        stable, canary = (random.multinomial(200, each / each.sum()).astype(float) for each in (often, even))
        moved = with_block(moved, stable, canary, CANARY, now)
    means = with_block(begun(numbers, now), numbers.counts(random.normal(size=300)), None, "", now)
    rows = [
        _row(service, "class of label", Kind.CLASS, moved),
        _row(service, "class of another label", Kind.CLASS, watched),
        _row(service, "mean of image", Kind.NUMBER, means),
        DriftFeature(service=service, name="text of user", source=Source.INPUT, kind=Kind.CLASS, bins={}, since=now),
        DriftFeature(service=service, name="deviation of image", source=Source.INPUT, kind=Kind.NUMBER, since=now),
    ]
    rows[0].alarm_at, rows[0].sentence = now, sentence_of(moved, rows[0].name, Source.ANSWER, STABLE)
    return DriftFeature.objects.bulk_create(rows)


def _row(service: InferenceService, name: str, kind: Kind, watch: Watch) -> DriftFeature:
    return DriftFeature(
        service=service,
        name=name,
        source=Source.ANSWER if kind is Kind.CLASS else Source.INPUT,
        kind=kind,
        version=service.model_version_id if kind is Kind.CLASS else None,
        bins=watch.bins.json(),
        since=watch.since,
        state=watch_json(watch),
        evidence=watch.evidence,
    )
