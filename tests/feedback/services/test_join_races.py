"""Workers that join at the same time, while labels come and change."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import Sum

from feedback.models import HourlyQuality, Label, Score
from feedback.services import join as joining
from feedback.services.scorers import scorer_set
from tests import scenes
from tests.feedback._support.rows import NOON, answer, join, send

pytestmark = pytest.mark.django_db(transaction=True)


def test_each_label_is_scored_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "BATCH", 5)
    service = scenes.service()
    for name in ("right", "second"):
        scorer_set(namespace="default", name="digits", scorer=name, kind="accuracy", options={}, actor="test", now=NOON)
    for number in range(60):
        answer(service, f"r{number}", [(number % 3, 0.9)], at=NOON + timedelta(minutes=number))
    labels = {f"r{number}": 1 for number in range(60)}
    send(service, dict.fromkeys(labels, 0))

    def work(turn: int) -> None:
        try:
            if turn == 2:
                send(service, labels, NOON + timedelta(hours=2))
            joining.labels_join(clock=lambda: NOON + timedelta(hours=3))
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as workers:
        list(workers.map(work, range(4)))
    join(NOON + timedelta(hours=4))
    assert not Label.objects.filter(joined_at=None).exists()
    losses = {(score.request_id, score.loss) for score in Score.objects.all()}
    assert losses == {(f"r{number}", 0.0 if number % 3 == 1 else 1.0) for number in range(60)}
    sums = HourlyQuality.objects.values("scorer").annotate(scores=Sum("scores"), loss=Sum("loss"))
    assert [(each["scores"], each["loss"]) for each in sums] == [(60, 40.0)] * 2
