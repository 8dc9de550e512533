"""What the control plane did for the custom resources of clusters."""

from django.db import models

from clusters.models import Cluster
from deployments.models import InferenceService


class ResourceObject(models.Model):
    """An object of a cluster, and how far it was followed.

    The database does not check references to other apps: the release before knows no objects, and deletes those rows.

    Attributes:
        kind: InferenceService, RolloutPolicy, Rollout or ModelVersion.
        uid: of the object that was followed last; another one of the name is a new one.
        service: the service of an InferenceService or a Rollout.
        model_import, model_version: of a ModelVersion; the import is deleted some time after its end.
        digest: of what was applied last, also where that was refused.
        acted: the generation of a Rollout whose action was done, or by which a policy was saved; 0 before.
        last_action: of a Rollout, with its outcome; None before the first.
        problem: why it was refused; empty where it was not.
        retry_at: when it is tried again; None where nothing is left to do.
        written: `changes` of the service that the status is of.
        event_seq: the last event of the service that the cluster has.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    kind = models.CharField(max_length=40)
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    service = models.ForeignKey(
        InferenceService, null=True, on_delete=models.SET_NULL, related_name="+", db_constraint=False
    )
    model_import = models.ForeignKey(
        "registry.ModelImport", null=True, on_delete=models.SET_NULL, related_name="+", db_constraint=False
    )
    model_version = models.ForeignKey(
        "registry.ModelVersion", null=True, on_delete=models.SET_NULL, related_name="+", db_constraint=False
    )
    digest = models.CharField(max_length=64, blank=True)
    acted = models.BigIntegerField(default=0)
    last_action = models.JSONField(null=True)
    problem = models.TextField(blank=True)
    retry_at = models.DateTimeField(null=True)
    written = models.BigIntegerField(default=-1)
    event_seq = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind", "namespace", "name"], name="resource_object_unique")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"
