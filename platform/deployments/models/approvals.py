"""Rollout approvals."""

from django.db import models

from accounts.models import User
from deployments.models.rollouts import Rollout


class Approval(models.Model):
    """One person's approval of one point of a rollout; `deployments.domain.rollout.approvals` defines its subject.

    Attributes:
        given_by: its author, as in the audit log.
        used_at: when it let the rollout proceed, together with the others required.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="approvals")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    given_by = models.CharField(max_length=300)
    comment = models.TextField(blank=True)
    attempt = models.PositiveIntegerField()
    step_index = models.PositiveIntegerField(null=True)
    artifact_digest = models.CharField(max_length=100)
    configuration_digest = models.CharField(max_length=71)
    policy_digest = models.CharField(max_length=71)
    given_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    withdrawn_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"approval {self.pk} of rollout {self.rollout_id}"
