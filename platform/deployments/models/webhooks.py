"""Webhook subscriptions and their deliveries."""

from django.db import models
from django.db.models import Q

from accounts.models import Team
from deployments.models.choices import choices


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

    def __str__(self) -> str:
        return f"webhook {self.pk}"


class WebhookDelivery(models.Model):
    """One event for a webhook; `events.delivery` draws its states."""

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
        verbose_name_plural = "webhook deliveries"
        indexes = [
            models.Index(fields=["next_try_at"], condition=Q(status="PENDING"), name="delivery_pending"),
        ]

    def __str__(self) -> str:
        return f"{self.event} to {self.webhook}"
