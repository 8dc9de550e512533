"""Comparisons of a shadow's answers with stable's."""

from django.db import models

from deployments.models.rollouts import Rollout


class ComparisonRun(models.Model):
    """The comparison of answers at one step of one attempt.

    It contains the team's data: `worst` and `waiting` hold parts of requests and answers, which are deleted with the
    measurements of the rollout (`deployments.services.retention`).

    Attributes:
        report: the figures so far (`deployments.domain.comparison.report`).
        worst: the requests whose answers differ the most, shortened.
        waiting: exchanges with only one side read so far, compressed; empty once the step is over.
        stable_alone, shadow_alone: requests with only one side ever read.
        compared_at: when exchanges were read last.
        problem: why they cannot be read now; empty where they can.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="comparison_runs")
    attempt = models.PositiveIntegerField()
    step_index = models.PositiveIntegerField()
    report = models.JSONField(default=dict)
    worst = models.JSONField(default=list)
    waiting = models.BinaryField(default=bytes)
    stable_alone = models.BigIntegerField(default=0)
    shadow_alone = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    compared_at = models.DateTimeField(null=True)
    problem = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rollout", "attempt", "step_index"], name="comparison_run_one_per_step")
        ]

    def __str__(self) -> str:
        return f"comparison at step {self.step_index} of rollout {self.rollout_id}, attempt {self.attempt}"
