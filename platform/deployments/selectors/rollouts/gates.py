"""Webhook gates of rollouts: the systems called, and their answers."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime

from deployments.domain.phases import Phase
from deployments.models import Rollout, WebhookQuestion
from deployments.views.shapes import QuestionView


def questions_views(rollouts: Iterable[Rollout], now: datetime) -> Mapping[int, tuple[QuestionView, ...]]:
    """Return the webhook calls of each rollout, in their order."""
    by_id = {rollout.pk: rollout for rollout in rollouts}
    found = defaultdict[int, list[QuestionView]](list)
    for row in WebhookQuestion.objects.filter(rollout__in=list(by_id)).order_by("pk"):
        found[row.rollout_id].append(_view(row, by_id[row.rollout_id], now))
    return {pk: tuple(found[pk]) for pk in by_id}


def _view(row: WebhookQuestion, rollout: Rollout, now: datetime) -> QuestionView:
    is_there = (row.attempt, row.step_index) == (rollout.attempt, rollout.step_index)
    is_asking = rollout.phase in (Phase.PENDING, Phase.PROGRESSING) and row.decided_at is None and now < row.deadline_at
    return QuestionView(
        name=row.name,
        when=row.when,
        attempt=row.attempt,
        step_index=row.step_index,
        answer=row.answer,
        message=row.message,
        tries=row.tries,
        is_open=is_there and is_asking,
        answered_at=row.answered_at,
        deadline_at=row.deadline_at,
    )
