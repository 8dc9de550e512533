"""Registered models, their immutable numbered versions, and the aliases that point at versions (MLflow's words)."""

from django.db import models

from registry.lifecycle import CheckState, Status


class RegisteredModel(models.Model):
    """A name under which versions are numbered.

    `latest_number` only rises, so that the number of a deleted version never comes back as another file.
    `compatible_with` (`@alias` or a number, or empty) names the version that new ones must be able to stand in for.
    """

    name = models.CharField(max_length=128, unique=True)
    description = models.TextField(blank=True)
    tags = models.JSONField(default=dict, blank=True)
    compatible_with = models.CharField(max_length=65, blank=True)
    latest_number = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    def __str__(self) -> str:
        return self.name


class ModelVersion(models.Model):
    """One set of model files, known by its digest. What it is never changes; `status` tells whether it can be served.

    `claim` is the id of the running check: who holds it may write the outcome, until `next_check_at` lets another
    begin. `lineage` is `Lineage.as_json()`. `required_signature` is what the version was registered to fit
    (`registry.compatibility`).
    """

    model = models.ForeignKey(RegisteredModel, on_delete=models.CASCADE, related_name="versions")
    number = models.PositiveIntegerField()
    digest = models.CharField(max_length=71)
    artifact_uri = models.CharField(max_length=1000)
    size_bytes = models.BigIntegerField()
    source_name = models.CharField(max_length=255)
    description = models.TextField(blank=True)
    tags = models.JSONField(default=dict, blank=True)
    lineage = models.JSONField(default=dict, blank=True)
    required_signature = models.JSONField(default=dict, blank=True)
    platform = models.CharField(max_length=64, blank=True)
    signature = models.JSONField(default=dict, blank=True)
    profile = models.JSONField(default=dict, blank=True)
    status = models.CharField(max_length=10, choices=[(s.value, s.value) for s in Status], default=Status.PENDING.value)
    reason = models.TextField(blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    next_check_at = models.DateTimeField(null=True, blank=True)
    claim = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["model", "number"], name="version_number_once"),
            models.UniqueConstraint(fields=["model", "digest"], name="version_digest_once"),
            models.CheckConstraint(
                condition=models.Q(status__in=[status.value for status in Status]), name="version_status_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["next_check_at"], condition=models.Q(status=Status.PENDING.value), name="version_pending_checks"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.model.name} version {self.number}"

    @property
    def uri(self) -> str:
        """Return what a service file calls this version."""
        return f"models:/{self.model.name}/{self.number}"

    @property
    def check_state(self) -> CheckState:
        """Return the columns that `lifecycle` decides over."""
        return CheckState(Status(self.status), self.attempts, self.reason, self.next_check_at)


class Alias(models.Model):
    """A name that points at one version of its model and may move."""

    model = models.ForeignKey(RegisteredModel, on_delete=models.CASCADE, related_name="aliases")
    name = models.CharField(max_length=64)
    version = models.ForeignKey(ModelVersion, on_delete=models.CASCADE, related_name="aliases")
    moved_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["model", "name"], name="alias_once")]
        verbose_name_plural = "aliases"

    def __str__(self) -> str:
        return f"{self.model.name}@{self.name}"
