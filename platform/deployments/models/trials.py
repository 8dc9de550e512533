"""Trials: single requests that a version answers before a service runs it."""

from django.db import models

from deployments.models.choices import choices
from deployments.models.services import Cluster
from jobs.attempts import Status


class Trial(models.Model):
    """One request that a short run of the serving runtime answers; states as `jobs.attempts`.

    Attributes:
        request: V2's JSON as text, of at most `trying.trial.MOST_REQUEST_BYTES`.
        stage: the run's last reported stage; empty before its start.
        answer: V2's JSON as text; empty without one.
        report: as `trying.trial.Tried`; empty until it is DONE.
        claim, next_try_at, attempts: its present claim, and when the claim can be taken over.
    """

    model_version = models.ForeignKey("registry.ModelVersion", on_delete=models.CASCADE, related_name="trials")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="trials")
    request = models.TextField()
    status = models.CharField(max_length=10, choices=choices(Status), default=Status.PENDING)
    reason = models.TextField(blank=True)
    stage = models.CharField(max_length=200, blank=True)
    answer = models.TextField(blank=True)
    report = models.JSONField(default=dict)
    claim = models.UUIDField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_index=True)
    created_by = models.CharField(max_length=300)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["next_try_at"], condition=models.Q(finished_at=None), name="trial_pending")]

    def __str__(self) -> str:
        return f"trial {self.pk}"
