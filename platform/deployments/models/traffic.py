"""Traffic history of a service's clients."""

from django.db import models

from deployments.models.services import InferenceService, Revision


class TrafficLook(models.Model):
    """The last sample of a service's counters, which the next one continues.

    Attributes:
        totals: its counters (`deployments.domain.analysis.evidence.totals`).
    """

    service = models.OneToOneField(InferenceService, primary_key=True, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()
    totals = models.JSONField()

    def __str__(self) -> str:
        return f"{self.service_id} at {self.at}"


class TrafficPoint(models.Model):
    """The traffic of a revision's clients between two samples (`deployments.reconcile.participants.traffic`).

    Attributes:
        at: the time of the second sample; the first was `seconds` before.
        requests, client_errors, server_errors: of clients, counted by the gateway, or by replicas that replace it.
        latency: [[upper edge in microseconds, requests]] of the replicas' buckets with any; the edge is None above all.
        replicas: how many accepted requests at the second sample.
        has_weight: False of the revision of a rollout that gives it no share of the requests, at the second sample.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="+")
    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="traffic")
    at = models.DateTimeField()
    seconds = models.FloatField()
    requests = models.BigIntegerField()
    client_errors = models.BigIntegerField(default=0, db_default=0)
    server_errors = models.BigIntegerField()
    latency = models.JSONField()
    replicas = models.PositiveIntegerField()
    has_weight = models.BooleanField(default=True, db_default=True)

    class Meta:
        indexes = [
            models.Index(fields=["service", "at"], name="traffic_of_service"),
            models.Index(fields=["at"], name="traffic_at"),
        ]

    def __str__(self) -> str:
        return f"{self.revision_id} at {self.at}"
