"""Rollouts, and the analysis of each of their steps."""

from django.db import models
from django.db.models import Q

from common.db.choices import choices
from deployments.domain.analysis.verdict import Verdict
from deployments.domain.phases import ENDED_BADLY, Phase
from deployments.models.services import InferenceService, Revision


class Rollout(models.Model):
    """A rollout of a service from a revision to the next; `deployments.domain.rollout.advance` moves it.

    Attributes:
        policy_document: the policy file at the start; a later change of the policy does not reach this rollout.
        contract: its changes for clients (`deployments.domain.service_state.contract`); None for a rollback, and in
            earlier releases.
        attempt: 1, and one more for each retry.
        step_index: the present step; the number of steps once all traffic is to move.
        weight: percent of clients' requests that the new revision should get now.
        mirror: percent of them that should be copied to it now.
        match: the headers of the group whose requests it gets now, as in a step of the policy file.
        reason_since: when the reason's code began; None in rows of earlier releases.
        confirmed_at: when the gateway first sent and copied the desired traffic; the hold counts from then.
        waiting_since: since when the canary has not been ready; None while it is.
        deadline_at: when its time is up; None where it has no end, or was paused for it.
        full_replicas: how many replicas stable had, where the canary's replace them; None with a surge.
        restart_baseline: restarts of the canary's replicas when the attempt began; None until observed.
        latency_edges_us: edges of slow requests in this attempt: quantile -> edge of the histogram, fixed from stable.
        authors: the people behind it: [{"actor", "did"}], such as who started it and who registered its version.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="rollouts")
    from_revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="+")
    to_revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="rollouts")
    policy_name = models.CharField(max_length=63, blank=True)
    policy_version = models.PositiveIntegerField(default=0)
    policy_document = models.JSONField()
    contract = models.JSONField(null=True)
    phase = models.CharField(max_length=12, choices=choices(Phase))
    step_index = models.PositiveIntegerField(default=0)
    weight = models.PositiveSmallIntegerField(default=0)
    mirror = models.PositiveSmallIntegerField(default=0)
    match = models.JSONField(default=list)
    verdict = models.CharField(max_length=12, choices=choices(Verdict), default=Verdict.RUNNING)
    reason_code = models.CharField(max_length=40)
    reason_message = models.TextField()
    reason_since = models.DateTimeField(null=True)
    attempt = models.PositiveIntegerField(default=1)
    attempt_started_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    waiting_since = models.DateTimeField(null=True)
    deadline_at = models.DateTimeField(null=True)
    full_replicas = models.PositiveIntegerField(null=True)
    restart_baseline = models.JSONField(null=True)
    latency_edges_us = models.JSONField(default=dict)
    authors = models.JSONField(default=list)
    started_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True)
    created_by = models.CharField(max_length=300)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["service"],
                condition=Q(phase__in=[Phase.PENDING, Phase.PROGRESSING, Phase.PAUSED]),
                name="rollout_one_in_progress",
            ),
            models.CheckConstraint(condition=Q(weight__lte=100), name="rollout_weight_percent"),
            models.CheckConstraint(condition=Q(mirror__lte=100), name="rollout_mirror_percent"),
        ]
        indexes = [
            models.Index(fields=["service", "-id"], name="rollout_newest"),
            models.Index(fields=["finished_at"], name="rollout_finished"),
            models.Index(fields=["-finished_at"], condition=Q(phase__in=ENDED_BADLY), name="rollout_ended_badly"),
        ]

    def __str__(self) -> str:
        return f"rollout {self.pk} of {self.service_id}"


class AnalysisRun(models.Model):
    """The counts and the verdict of one step of one attempt, or of the background of all its steps.

    Attributes:
        step_index: None in the background.
        weight, mirror: the step's percent of the requests and of copies of them.
        totals: the counters summed up so far (`deployments.domain.analysis.evidence.totals`), which the next tick
            continues.
        evidence: the attempt's evidence from them (`deployments.domain.analysis.evidence.ledger`), written with them.
        first_request_at: when the canary got its first request in the step; the deadline counts from then.
        canary_requests, stable_requests: what the gateway sent to each in the step.
        pointed_at: when its last `AnalysisPoint` was stored; None before the first.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="analysis_runs")
    attempt = models.PositiveIntegerField()
    step_index = models.PositiveIntegerField(null=True)
    weight = models.PositiveSmallIntegerField()
    mirror = models.PositiveSmallIntegerField(default=0)
    verdict = models.CharField(max_length=12, choices=choices(Verdict), default=Verdict.RUNNING)
    message = models.TextField(blank=True)
    measurements = models.JSONField(default=list)
    totals = models.JSONField(default=dict)
    evidence = models.JSONField(default=dict)
    canary_requests = models.BigIntegerField(default=0)
    stable_requests = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    first_request_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    pointed_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rollout", "attempt", "step_index"], name="analysis_run_one_per_step"),
            models.UniqueConstraint(
                fields=["rollout", "attempt"], condition=Q(step_index=None), name="analysis_run_one_in_background"
            ),
        ]

    def __str__(self) -> str:
        where = "background" if self.step_index is None else f"step {self.step_index}"
        return f"{where} of rollout {self.rollout_id}, attempt {self.attempt}"


class AnalysisPoint(models.Model):
    """A snapshot of an analysis run, for its chart (`deployments.domain.analysis.points`).

    Attributes:
        values: metric -> [canary, stable, limit, low, high, evidence_percent], each a number or None.
    """

    run = models.ForeignKey(AnalysisRun, on_delete=models.CASCADE, related_name="points")
    at = models.DateTimeField()
    canary_requests = models.BigIntegerField()
    values = models.JSONField()

    class Meta:
        indexes = [models.Index(fields=["run", "at"], name="analysis_point_in_order")]

    def __str__(self) -> str:
        return f"{self.run_id} at {self.at}"
