"""Upgrades of the fleet, and the services of each.

The database does not check references to other apps: the release before, which knows no upgrades, deletes those rows.
"""

from django.db import models

from clusters.models import Cluster
from common.db.choices import choices
from deployments.models import InferenceService, Rollout
from fleet.domain.waves import Phase, State


class FleetUpgrade(models.Model):
    """An upgrade of services whose pinned pod templates are not the present ones.

    Attributes:
        cluster, namespace: only services there; None and empty for all.
        percent: share of the services in each wave after the first.
        at_once: the most that are upgraded at the same time.
        message: why it is paused, or how it ended.
        is_open: True until it is over, then None: one is open at a time.
    """

    cluster = models.ForeignKey(Cluster, null=True, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    namespace = models.CharField(max_length=63, blank=True)
    percent = models.PositiveSmallIntegerField()
    at_once = models.PositiveSmallIntegerField()
    phase = models.CharField(max_length=10, choices=choices(Phase), default=Phase.RUNNING)
    message = models.TextField(blank=True)
    is_open = models.BooleanField(null=True, default=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["is_open"], name="fleet_upgrade_one_open")]

    def __str__(self) -> str:
        return f"upgrade {self.pk}"


class ServiceUpgrade(models.Model):
    """A service of an upgrade.

    Attributes:
        changes: what its new revision gets, as of the start of the upgrade.
        rollout: the one that upgrades it; None before it.
        message: why it waits, failed or was skipped.
    """

    upgrade = models.ForeignKey(FleetUpgrade, on_delete=models.CASCADE, related_name="services")
    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="+", db_constraint=False)
    wave = models.PositiveIntegerField()
    state = models.CharField(max_length=10, choices=choices(State), default=State.WAITING)
    changes = models.TextField()
    message = models.TextField(blank=True)
    rollout = models.ForeignKey(Rollout, null=True, on_delete=models.SET_NULL, related_name="+", db_constraint=False)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["upgrade", "service"], name="fleet_service_once")]
        indexes = [models.Index(fields=["upgrade", "state"], name="fleet_service_state")]

    def __str__(self) -> str:
        return f"{self.service} in {self.upgrade}"
