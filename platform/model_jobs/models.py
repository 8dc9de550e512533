"""Builds, tunings and trials: jobs with a model version where models run."""

from django.db import models

from clusters.models import Cluster
from deployments.models import InferenceService
from jobs.models import ClaimedJob


class Build(ClaimedJob):
    """One version made of another, such as a plan for a slice of a GPU; states as `jobs.domain.attempts`.

    Attributes:
        order: a `BuildOrder` as JSON.
        progress: the build's last message; report: its result.
        digest, size_bytes: of the built files, which are in the artifact store; empty and 0 before.
        version: the result, a new version or the one with the same files.
    """

    model_version = models.ForeignKey("registry.ModelVersion", on_delete=models.CASCADE, related_name="builds")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="builds")
    order = models.JSONField(default=dict)
    progress = models.JSONField(default=dict)
    report = models.JSONField(default=dict)
    digest = models.CharField(max_length=71, blank=True)
    size_bytes = models.BigIntegerField(default=0)
    version = models.ForeignKey(
        "registry.ModelVersion", null=True, on_delete=models.SET_NULL, related_name="made_by_builds"
    )

    class Meta:
        db_table = "deployments_build"
        indexes = [models.Index(fields=["next_try_at"], condition=models.Q(finished_at=None), name="build_pending")]

    def __str__(self) -> str:
        return f"build {self.pk}"


class Tuning(ClaimedJob):
    """A search for a version's configuration with most throughput within a latency; states as `jobs.domain.attempts`.

    Attributes:
        service: the service it is for: it runs with its replicas' configuration, variables and resources. None for a
            plain version, with the cluster's defaults.
        order: a `TuningOrder` as JSON.
        model_config: the service file's overrides of the version's own configuration.
        progress: the search's last message; report: its result, without the plot, which is SVG.
    """

    model_version = models.ForeignKey("registry.ModelVersion", on_delete=models.CASCADE, related_name="tunings")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="tunings")
    service = models.ForeignKey(InferenceService, null=True, on_delete=models.CASCADE, related_name="tunings")
    order = models.JSONField(default=dict)
    model_config = models.JSONField(default=dict)
    progress = models.JSONField(default=dict)
    report = models.JSONField(default=dict)
    plot = models.TextField(blank=True)

    class Meta:
        db_table = "deployments_tuning"
        indexes = [models.Index(fields=["next_try_at"], condition=models.Q(finished_at=None), name="tuning_pending")]

    def __str__(self) -> str:
        return f"tuning {self.pk}"


class Trial(ClaimedJob):
    """One request that a short run of the serving runtime answers; states as `jobs.domain.attempts`.

    Attributes:
        request: V2's JSON as text, of at most `trying.trial.MOST_REQUEST_BYTES`.
        stage: the run's last reported stage; empty before its start.
        answer: V2's JSON as text; empty without one.
        report: as `trying.trial.Tried`; empty until it is DONE.
    """

    model_version = models.ForeignKey("registry.ModelVersion", on_delete=models.CASCADE, related_name="trials")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="trials")
    request = models.TextField()
    stage = models.CharField(max_length=200, blank=True)
    answer = models.TextField(blank=True)
    report = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "deployments_trial"
        indexes = [models.Index(fields=["next_try_at"], condition=models.Q(finished_at=None), name="trial_pending")]

    def __str__(self) -> str:
        return f"trial {self.pk}"
