"""Processes that turn to the services of Kubernetes clusters."""

from django.db import models


class ControllerProcess(models.Model):
    """A controller that runs, or has ended a moment ago (`deployments.reconcile.controllers`).

    Attributes:
        name: its own, and no other's ever.
        seen_at: when it last said that it runs.
    """

    name = models.CharField(max_length=32, primary_key=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
