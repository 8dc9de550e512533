"""What clients got of a service lately."""

from django.db import models

from deployments.models.services import InferenceService, Revision


class TrafficLook(models.Model):
    """The last look at a service's counters, from which the next one goes on.

    Attributes:
        totals: the counters then (`deployments.domain.analysis.evidence.totals`).
    """

    service = models.OneToOneField(InferenceService, primary_key=True, on_delete=models.CASCADE, related_name="+")
    at = models.DateTimeField()
    totals = models.JSONField()

    def __str__(self) -> str:
        return f"{self.service_id} at {self.at}"


class TrafficPoint(models.Model):
    """What a revision's clients got between two looks (`deployments.reconcile.participants.traffic`).

    Attributes:
        at: when the second look was; the first was `seconds` before.
        requests, server_errors: of clients, as the gateway counted them, or replicas where those stand for it.
        latency: [[upper edge in microseconds, requests]] of the replicas' buckets with any; the edge is None above all.
        replicas: how many took requests at the second look.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="+")
    revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="traffic")
    at = models.DateTimeField()
    seconds = models.FloatField()
    requests = models.BigIntegerField()
    server_errors = models.BigIntegerField()
    latency = models.JSONField()
    replicas = models.PositiveIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["service", "at"], name="traffic_of_service"),
            models.Index(fields=["at"], name="traffic_at"),
        ]

    def __str__(self) -> str:
        return f"{self.revision_id} at {self.at}"
