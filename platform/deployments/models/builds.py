"""Builds of model versions from other versions."""

from django.db import models

from deployments.models.choices import choices
from deployments.models.services import Cluster
from jobs.attempts import Status


class Build(models.Model):
    """One version made of another, such as a plan for a slice of a GPU; states as `jobs.attempts`.

    Attributes:
        order: a `BuildOrder` as JSON.
        progress: the build's last message; report: its result.
        digest, size_bytes: of the built files, which are in the artifact store; empty and 0 before.
        version: the result, a new version or the one with the same files.
        claim, next_try_at, attempts: its present claim, and when the claim can be taken over.
    """

    model_version = models.ForeignKey("registry.ModelVersion", on_delete=models.CASCADE, related_name="builds")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="builds")
    order = models.JSONField(default=dict)
    status = models.CharField(max_length=10, choices=choices(Status), default=Status.PENDING)
    reason = models.TextField(blank=True)
    progress = models.JSONField(default=dict)
    report = models.JSONField(default=dict)
    digest = models.CharField(max_length=71, blank=True)
    size_bytes = models.BigIntegerField(default=0)
    version = models.ForeignKey(
        "registry.ModelVersion", null=True, on_delete=models.SET_NULL, related_name="made_by_builds"
    )
    claim = models.UUIDField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["next_try_at"], condition=models.Q(finished_at=None), name="build_pending")]

    def __str__(self) -> str:
        return f"build {self.pk}"
