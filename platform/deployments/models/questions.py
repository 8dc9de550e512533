"""Webhook queries of rollout steps, and their answers."""

from django.db import models
from django.db.models import Q

from common.db.choices import choices
from deployments.domain.rollout.webhooks import Answer
from deployments.models.rollouts import Rollout


class WebhookQuestion(models.Model):
    """A webhook called at one step of one attempt; `deployments.reconcile.participants.gates` draws its states.

    Attributes:
        when: `before` or `after`, as the policy says.
        message: its message, or why it gave no answer.
        next_try_at: when it is called next; from then on an answer to the last call no longer counts.
        deadline_at: undecided by then, it is not called again.
        decided_at: when it answered go or no, or a person let the step pass without it.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="questions")
    attempt = models.PositiveIntegerField()
    step_index = models.PositiveIntegerField()
    name = models.CharField(max_length=63)
    when = models.CharField(max_length=6)
    answer = models.CharField(max_length=11, choices=choices(Answer), default=Answer.WAIT)
    message = models.TextField(blank=True)
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()
    deadline_at = models.DateTimeField()
    opened_at = models.DateTimeField()
    answered_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rollout", "attempt", "step_index", "name"], name="question_once"),
        ]
        indexes = [
            models.Index(fields=["next_try_at"], condition=Q(decided_at=None), name="question_open"),
        ]

    def __str__(self) -> str:
        return f"question {self.pk} to {self.name}"
