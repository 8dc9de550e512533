"""Tunings: searches for a version's best configuration on its hardware."""

from django.db import models

from deployments.models.choices import choices
from deployments.models.services import Cluster, InferenceService
from jobs.attempts import Status


class Tuning(models.Model):
    """A search for a version's configuration with most throughput within a latency; states as `jobs.attempts`.

    Attributes:
        service: the service it is for: it runs with its replicas' configuration, variables and resources. None for a
            plain version, with the cluster's defaults.
        order: a `TuningOrder` as JSON.
        model_config: the service file's overrides of the version's own configuration.
        progress: the search's last message; report: its result, without the plot, which is SVG.
        claim, next_try_at, attempts: its present claim, and when the claim can be taken over.
    """

    model_version = models.ForeignKey("registry.ModelVersion", on_delete=models.CASCADE, related_name="tunings")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="tunings")
    service = models.ForeignKey(InferenceService, null=True, on_delete=models.CASCADE, related_name="tunings")
    order = models.JSONField(default=dict)
    model_config = models.JSONField(default=dict)
    status = models.CharField(max_length=10, choices=choices(Status), default=Status.PENDING)
    reason = models.TextField(blank=True)
    progress = models.JSONField(default=dict)
    report = models.JSONField(default=dict)
    plot = models.TextField(blank=True)
    claim = models.UUIDField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["next_try_at"], condition=models.Q(finished_at=None), name="tuning_pending")]

    def __str__(self) -> str:
        return f"tuning {self.pk}"
