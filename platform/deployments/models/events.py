"""Events of services and clusters."""

from django.db import models
from django.db.models import Q

from deployments.models.rollouts import Rollout
from deployments.models.services import Cluster, InferenceService


class Event(models.Model):
    """One event, in one sentence; append-only. Belongs to a service or to the cluster itself.

    Attributes:
        seq: counts up by one within its service (or cluster), assigned under that row's lock, so that a reader of n
            misses nothing below.
        request_id: the request that caused it; empty without one.
    """

    service = models.ForeignKey(InferenceService, null=True, on_delete=models.CASCADE, related_name="events")
    cluster = models.ForeignKey(Cluster, null=True, on_delete=models.CASCADE, related_name="events")
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=40)
    message = models.TextField()
    revision = models.CharField(max_length=63, blank=True)
    rollout = models.ForeignKey(Rollout, null=True, on_delete=models.CASCADE, related_name="events")
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["service", "seq"], name="event_seq_of_service"),
            models.UniqueConstraint(fields=["cluster", "seq"], name="event_seq_of_cluster"),
            models.CheckConstraint(
                condition=Q(service__isnull=True) ^ Q(cluster__isnull=True), name="event_of_service_or_cluster"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"
