"""Events of services and clusters, and the webhooks that receive them."""

from django.db import models
from django.db.models import Q

from accounts.models import Team
from common.db.choices import choices


class Event(models.Model):
    """One event, in one sentence; append-only. Belongs to a service or to the cluster itself.

    Attributes:
        seq: counts up by one within its service (or cluster), assigned under that row's lock, so that a reader of n
            misses nothing below.
        request_id: the request that caused it; empty without one.
    """

    service = models.ForeignKey(
        "deployments.InferenceService", null=True, on_delete=models.CASCADE, related_name="events"
    )
    cluster = models.ForeignKey("clusters.Cluster", null=True, on_delete=models.CASCADE, related_name="events")
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=40)
    message = models.TextField()
    revision = models.CharField(max_length=63, blank=True)
    rollout = models.ForeignKey("deployments.Rollout", null=True, on_delete=models.CASCADE, related_name="events")
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
        db_table = "deployments_event"
        constraints = [
            models.UniqueConstraint(fields=["service", "seq"], name="event_seq_of_service"),
            models.UniqueConstraint(fields=["cluster", "seq"], name="event_seq_of_cluster"),
            models.CheckConstraint(
                condition=Q(service__isnull=True) ^ Q(cluster__isnull=True), name="event_of_service_or_cluster"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.seq} {self.kind}"


class Webhook(models.Model):
    """A webhook subscription to events; `sealed_secret` signs its deliveries (`common.encryption`).

    Attributes:
        team: the team whose namespaces and models it covers; None for the whole installation, its own parts included.
        enabled: whether it gets events from now on.
    """

    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="webhooks")
    url = models.CharField(max_length=1000)
    events = models.JSONField()
    description = models.CharField(max_length=300, blank=True)
    enabled = models.BooleanField(default=True)
    sealed_secret = models.TextField()
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    class Meta:
        db_table = "deployments_webhook"

    def __str__(self) -> str:
        return f"webhook {self.pk}"


class WebhookDelivery(models.Model):
    """One event for a webhook; `events.services.delivery` draws its states."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    payload = models.JSONField()
    status = models.CharField(max_length=9, default="PENDING", choices=choices(("PENDING", "DELIVERED", "FAILED")))
    tries = models.PositiveSmallIntegerField(default=0)
    answer_status = models.PositiveSmallIntegerField(null=True)
    answer = models.TextField(blank=True)
    next_try_at = models.DateTimeField()
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "deployments_webhookdelivery"
        verbose_name_plural = "webhook deliveries"
        indexes = [
            models.Index(fields=["next_try_at"], condition=Q(status="PENDING"), name="delivery_pending"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"
