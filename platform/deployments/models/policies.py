"""Named rollout policies."""

from django.db import models

from common.db.choices import choices
from deployments.domain.policy import OnInconclusive, Strategy


class RolloutPolicy(models.Model):
    """A named policy file; `version` rises with each change, and a rollout keeps the text of its start.

    Attributes:
        all_series_version: the version that an administrator had saved before queries were limited to the series of a
            service; rollouts of it read all.
    """

    name = models.CharField(max_length=63, unique=True)
    strategy = models.CharField(max_length=20, choices=choices(Strategy))
    on_inconclusive = models.CharField(max_length=10, choices=choices(OnInconclusive))
    document = models.JSONField()
    version = models.PositiveIntegerField(default=1)
    all_series_version = models.PositiveIntegerField(null=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    class Meta:
        verbose_name_plural = "rollout policies"

    def __str__(self) -> str:
        return self.name
