"""Services, their revisions and rollouts, and what happened to them.

A row is changed only under its service's row lock (`deployments.recording`), and every change raises the service's
`changes`, by which the reconciler sees that somebody was faster. Revisions never change in what they serve; `role`,
`retire_at` and `stopped_at` say where they stand.
"""

from django.db import models
from django.db.models import Q

from accounts.models import Team
from deployments.analysis.verdict import Verdict
from deployments.desired import Role
from deployments.phases import Phase, ServicePhase
from deployments.policy import OnInconclusive, Strategy


def _choices(values: object) -> list[tuple[str, str]]:
    return [(str(value), str(value)) for value in values]  # type: ignore[attr-defined]


class Cluster(models.Model):
    """Where services run.

    Attributes:
        components: what was last seen of the parts that are no models: name -> {"ready", "restarts", "message"}.
        event_seq: the number of the newest event of the cluster itself.
        checked_at: when the worker looked last; `problem` says why it saw nothing then.
    """

    name = models.CharField(max_length=63, unique=True)
    kind = models.CharField(max_length=20)
    components = models.JSONField(default=dict)
    event_seq = models.BigIntegerField(default=0)
    checked_at = models.DateTimeField(null=True)
    problem = models.TextField(blank=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class RolloutPolicy(models.Model):
    """A named policy file; `version` rises with each change, and a rollout keeps the text it was started with."""

    name = models.CharField(max_length=63, unique=True)
    strategy = models.CharField(max_length=20, choices=_choices(Strategy))
    on_inconclusive = models.CharField(max_length=10, choices=_choices(OnInconclusive))
    document = models.JSONField()
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    class Meta:
        verbose_name_plural = "rollout policies"

    def __str__(self) -> str:
        return self.name


class InferenceService(models.Model):
    """What a client calls.

    Attributes:
        document: the service file as it was last applied.
        model_version: the registry version that the file's `storageUri` meant when it was last acted upon; None while
            the first is imported.
        awaited_import: brings the version that the file means; None where that is there. `import_note` tells of it.
        alias_problem: why the version that the alias means now cannot be rolled out; empty where it can.
        live_at: when its first revision began to take requests; from then on the weights sum to 100.
        generation: number of the desired state; rises when that changes, and the cluster ignores lower ones.
        changes: rises with every recorded change; who read an older number must read again.
        lease_owner, lease_expires_at: which reconciler has the service now.
        ticked_at, seen_at: when a reconciler last turned to the service, and when it last could read the cluster.
        event_seq, revision_seq: the numbers given last.
        request_id: the request that changed the service last, for which the reconciler acts; empty where none did.
        observed: what the cluster was last seen to run: revision name -> {"weight", "mirror", "ready", "restarts",
            "restart_numbers", "message"}.
        replica_restarts: restarts of each replica that events were written for.
        restart_number: rises when all its replicas are to be started anew.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="services")
    namespace = models.CharField(max_length=63)
    name = models.CharField(max_length=63)
    document = models.JSONField()
    policy = models.ForeignKey(RolloutPolicy, null=True, on_delete=models.PROTECT, related_name="services")
    model_version = models.ForeignKey("registry.ModelVersion", null=True, on_delete=models.PROTECT, related_name="+")
    awaited_import = models.ForeignKey("registry.ModelImport", null=True, on_delete=models.PROTECT, related_name="+")
    import_note = models.TextField(blank=True)
    alias_problem = models.TextField(blank=True)
    phase = models.CharField(max_length=20, choices=_choices(ServicePhase), default=ServicePhase.PENDING)
    reason = models.TextField(blank=True)
    live_at = models.DateTimeField(null=True)
    deleting_at = models.DateTimeField(null=True)
    generation = models.BigIntegerField(default=1)
    changes = models.BigIntegerField(default=0)
    lease_owner = models.CharField(max_length=64, blank=True)
    lease_expires_at = models.DateTimeField(null=True)
    ticked_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField(null=True)
    event_seq = models.BigIntegerField(default=0)
    revision_seq = models.PositiveIntegerField(default=0)
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")
    observed = models.JSONField(default=dict)
    replica_restarts = models.JSONField(default=dict)
    restart_number = models.PositiveIntegerField(default=0)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="service_name_unique")]
        indexes = [models.Index(fields=["ticked_at"], name="service_ticked_at")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Revision(models.Model):
    """What a service runs or ran: model digest, configuration, resources and scaling as one. Those never change.

    Attributes:
        number: counts up within the service; the name is `<service>-<5 digits>`.
        role: where it stands (`deployments.desired.Role`).
        retire_at: a retiring or failed revision runs on until then and until the gateway sends it nothing.
        stopped_at: since when it runs no more; None while it should run.
        replicas: how many it should have while it runs; where minReplicas and maxReplicas differ, by its load.
        load: what that is decided by (`deployments.replicas`): counters of the last seconds, earlier decisions, and
            "why" in words.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=63)
    model_version = models.ForeignKey("registry.ModelVersion", on_delete=models.PROTECT, related_name="revisions")
    artifact_digest = models.CharField(max_length=100)
    artifact_uri = models.TextField()
    min_replicas = models.PositiveIntegerField()
    max_replicas = models.PositiveIntegerField()
    scale_metric = models.CharField(max_length=20, blank=True)
    scale_target = models.FloatField(null=True)
    container_concurrency = models.PositiveIntegerField(default=0)
    model_config = models.JSONField(default=dict)
    env = models.JSONField(default=dict)
    cpu_cores = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    role = models.CharField(max_length=10, choices=_choices(Role))
    retire_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    replicas = models.PositiveIntegerField()
    load = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["service", "number"], name="revision_number_unique"),
            models.UniqueConstraint(fields=["service"], condition=Q(role=Role.STABLE), name="revision_one_stable"),
            models.UniqueConstraint(fields=["service"], condition=Q(role=Role.CANARY), name="revision_one_canary"),
        ]

    def __str__(self) -> str:
        return self.name


class Rollout(models.Model):
    """One way of a service from a revision to the next; `deployments.rollout.advance` moves it.

    Attributes:
        policy_document: the policy file at the start; a later change of the policy does not reach this rollout.
        attempt: 1, and one more for each retry.
        step_index: the step it is at; the number of steps once all traffic is to move.
        weight: percent of requests the canary should get now, or the shadow a copy of.
        confirmed_at: when the gateway first sent the present weight; hold counts from there.
        waiting_since: since when the canary has not been ready; None while it is.
        restart_baseline: restarts of the canary's replicas when the attempt began; None until seen.
        latency_edges_us: what is slow in this attempt: quantile -> an edge of the histogram, fixed from stable.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="rollouts")
    from_revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="+")
    to_revision = models.ForeignKey(Revision, on_delete=models.CASCADE, related_name="rollouts")
    policy_name = models.CharField(max_length=63, blank=True)
    policy_version = models.PositiveIntegerField(default=0)
    policy_document = models.JSONField()
    phase = models.CharField(max_length=12, choices=_choices(Phase))
    step_index = models.PositiveIntegerField(default=0)
    weight = models.PositiveSmallIntegerField(default=0)
    verdict = models.CharField(max_length=12, choices=_choices(Verdict), default=Verdict.RUNNING)
    reason_code = models.CharField(max_length=40)
    reason_message = models.TextField()
    attempt = models.PositiveIntegerField(default=1)
    attempt_started_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)
    waiting_since = models.DateTimeField(null=True)
    restart_baseline = models.JSONField(null=True)
    latency_edges_us = models.JSONField(default=dict)
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
        ]
        indexes = [models.Index(fields=["service", "-id"], name="rollout_newest")]

    def __str__(self) -> str:
        return f"rollout {self.pk} of {self.service_id}"


class AnalysisRun(models.Model):
    """What was counted and judged at one step of one attempt.

    Attributes:
        totals: the counters summed up so far (`deployments.analysis.totals`), from which the next tick goes on.
        first_request_at: when the canary got its first request in the step; the deadline counts from there.
        canary_requests, stable_requests: what the gateway sent to each in the step.
    """

    rollout = models.ForeignKey(Rollout, on_delete=models.CASCADE, related_name="analysis_runs")
    attempt = models.PositiveIntegerField()
    step_index = models.PositiveIntegerField()
    weight = models.PositiveSmallIntegerField()
    verdict = models.CharField(max_length=12, choices=_choices(Verdict), default=Verdict.RUNNING)
    message = models.TextField(blank=True)
    measurements = models.JSONField(default=list)
    totals = models.JSONField(default=dict)
    canary_requests = models.BigIntegerField(default=0)
    stable_requests = models.BigIntegerField(default=0)
    started_at = models.DateTimeField()
    first_request_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["rollout", "attempt", "step_index"], name="analysis_run_one_per_step")
        ]

    def __str__(self) -> str:
        return f"step {self.step_index} of rollout {self.rollout_id}, attempt {self.attempt}"


class Event(models.Model):
    """What happened, in one sentence; only ever added. Belongs to a service or to the cluster itself.

    Attributes:
        seq: counts up by one within its service (or cluster), given under that row's lock, so that a reader who has
        seen n
            misses nothing below.
        request_id: the request that is behind it; empty where it happened by itself.
    """

    service = models.ForeignKey(InferenceService, null=True, on_delete=models.CASCADE, related_name="events")
    cluster = models.ForeignKey(Cluster, null=True, on_delete=models.CASCADE, related_name="events")
    seq = models.BigIntegerField()
    at = models.DateTimeField()
    kind = models.CharField(max_length=40)
    message = models.TextField()
    revision = models.CharField(max_length=63, blank=True)
    rollout = models.ForeignKey(Rollout, null=True, on_delete=models.CASCADE, related_name="events")
    request_id = models.CharField(max_length=64, blank=True, default="", db_default="")

    class Meta:
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
    """An address that is told of events; `sealed_secret` signs what it is told (`common.sealing`).

    Attributes:
        team: whose namespaces and models it is told of; None for all of the installation, its own parts included.
        enabled: whether it is told of what happens from now on.
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
    """One event that a webhook is told; `deployments.deliveries` draws its states."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    event = models.CharField(max_length=40)
    payload = models.JSONField()
    status = models.CharField(max_length=9, default="PENDING", choices=_choices(("PENDING", "DELIVERED", "FAILED")))
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
