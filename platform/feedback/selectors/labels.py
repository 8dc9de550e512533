"""Labels of a service, counted."""

from dataclasses import dataclass

from django.db.models import Count, Q

from deployments.models import InferenceService
from feedback.models import Kept, Label, ServiceScorer
from feedback.selectors.scorers import scorer_query


@dataclass(frozen=True, slots=True)
class FeedbackSummary:
    """Feedback of a service.

    Attributes:
        received: labels that came, those deleted without an answer included.
        joined: with an answer of their request; `waiting` are those without one yet.
        unmatched: deleted without an answer.
        answers: what is kept; None where nothing is.
    """

    received: int
    joined: int
    waiting: int
    unmatched: int
    answers: Kept | None
    scorers: list[ServiceScorer]


def feedback_summary(*, service: InferenceService) -> FeedbackSummary:
    """Return how many labels came and what became of them, with the service's scorers by name."""
    kept = Kept.objects.filter(service=service).first()
    found = Label.objects.filter(service=service).aggregate(
        stored=Count("pk"), waiting=Count("pk", filter=Q(joined_at=None))
    )
    unmatched = 0 if kept is None else kept.unmatched
    return FeedbackSummary(
        received=found["stored"] + unmatched,
        joined=found["stored"] - found["waiting"],
        waiting=found["waiting"],
        unmatched=unmatched,
        answers=kept,
        scorers=list(scorer_query(service=service).order_by("name")),
    )
