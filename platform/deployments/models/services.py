"""Where services run, the services, and the revisions they run."""

from django.db import models
from django.db.models import BooleanField, ExpressionWrapper, F, Q
from django.db.models.functions import Now

from clusters.models import Cluster
from common.db.choices import choices
from deployments.domain.phases import ServicePhase
from deployments.domain.service_state.desired import Role
from deployments.domain.service_state.quiescence import UNSETTLED
from deployments.models.policies import RolloutPolicy
from integrations.clusters.base import DriftPolicy

IS_WELL = ExpressionWrapper(Q(phase__in=[ServicePhase.READY, ServicePhase.PROGRESSING]), BooleanField())
"""Whether a service does as it should; what orders services by it has an index only while it says the same."""


class InferenceService(models.Model):
    """What a client calls.

    Attributes:
        document: the service file as it was last applied.
        model_version: the registry version that the file's `storageUri` meant when it was last acted upon; None while
            the first is imported.
        awaited_import: brings the version that the file means; None where that is there. `import_note` tells of it.
        alias_problem: why the version that the alias means now cannot be rolled out; empty where it can.
        standing: what it waits for as far as the cluster goes (`deployments.domain.waits.Condition`); empty for
            nothing.
        refusal: why the cluster did not take what was desired last; empty where it did.
        waits_for, waits_since: what it waits for at all, and when that began.
        live_at: when its first revision began to take requests; from then on the weights sum to 100.
        stopped: nothing of it runs until it is resumed.
        generation: number of the desired state; rises when that changes, and the cluster ignores lower ones.
        changes: rises with every recorded change; who read an older number must read again.
        changed_at: when that was, by the database's clock.
        settled: the number of `changes` after which a turn of the reconciler found nothing that goes on; another
            number, such as those of `deployments.domain.service_state.quiescence`, has the next sweep turn to it
        (`deployments.reconcile.schedule`). lease_owner, lease_expires_at: which reconciler has the service now.
        ticked_at, seen_at: when a reconciler last turned to the service, and when it last could read the cluster.
        event_seq, revision_seq: the numbers given last.
        request_id: the request that changed the service last, for which the reconciler acts; empty where none did.
        observed: what the cluster was last seen to run: revision name -> {"weight", "mirror", "ready", "restarts",
            "restart_numbers", "metrics_urls", "message", "is_failing", "replicas"}.
        replica_restarts: restarts of each replica that events were written for.
        restart_number: rises when all its replicas are to be started anew.
        recorded_percent: of its requests that are recorded now (`models.Recording`); 0 for none.
        drift_policy: what becomes of changes made by hand on its cluster (`DriftPolicy`).
        drift: those that were found (`deployments.domain.service_state.drift`).
        request_timeout_s: so long after its beginning an HTTP request is given up; 0 is never.
        rolling: how its replicas are replaced, `{"maxSurge", "maxUnavailable"}`; None leaves it to the cluster.
        traffic_at: when its counters were last looked up for pages (`deployments.reconcile.participants.traffic`).
        tap_cursor: up to where everything that the taps of its replicas recorded was made use of.
        searched: what searches by words look through (`deployments.mapping.put_searched`).
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
    standing = models.CharField(max_length=40, blank=True, default="", db_default="")
    refusal = models.TextField(blank=True, default="", db_default="")
    waits_for = models.CharField(max_length=40, blank=True, default="", db_default="")
    waits_since = models.DateTimeField(null=True)
    phase = models.CharField(max_length=20, choices=choices(ServicePhase), default=ServicePhase.PENDING)
    reason = models.TextField(blank=True)
    live_at = models.DateTimeField(null=True)
    deleting_at = models.DateTimeField(null=True)
    stopped = models.BooleanField(default=False, db_default=False)
    generation = models.BigIntegerField(default=1)
    changes = models.BigIntegerField(default=0)
    changed_at = models.DateTimeField(db_default=Now())
    settled = models.BigIntegerField(default=UNSETTLED, db_default=UNSETTLED)
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
    recorded_percent = models.FloatField(default=0)
    drift_policy = models.CharField(
        max_length=10, choices=choices(DriftPolicy), default=DriftPolicy.HEAL, db_default=DriftPolicy.HEAL
    )
    drift = models.JSONField(default=list)
    request_timeout_s = models.PositiveIntegerField(default=0, db_default=0)
    rolling = models.JSONField(null=True)
    traffic_at = models.DateTimeField(null=True)
    tap_cursor = models.TextField(blank=True)
    searched = models.TextField(blank=True, default="", db_default="")
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["namespace", "name"], name="service_name_unique")]
        indexes = [
            models.Index(fields=["ticked_at"], name="service_ticked_at"),
            models.Index(fields=["phase", "namespace", "name"], name="service_of_phase"),
            models.Index(fields=["cluster", "ticked_at"], condition=~Q(settled=F("changes")), name="service_moving"),
            models.Index(fields=["cluster", "ticked_at"], condition=Q(settled=F("changes")), name="service_settled"),
            models.Index(fields=["-changed_at", "-id"], name="service_changed"),
            models.Index(fields=["-live_at", "id"], name="service_live"),
            models.Index(fields=["waits_for"], name="service_waits_for"),
            models.Index(fields=["name", "id"], name="service_by_name"),
            models.Index(fields=["created_at", "id"], name="service_created"),
            models.Index("cluster", IS_WELL, "namespace", "name", name="service_worst_first"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Revision(models.Model):
    """What a service runs or ran: model digest, configuration, resources and scaling as one. Those never change.

    Attributes:
        number: counts up within the service; the name is `<service>-<5 digits>`.
        role: where it stands (`deployments.domain.service_state.desired.Role`).
        patches: as they were when it was made: {"cluster": [...], "service": [...]}, as the files have them.
        egress: whether the model's process may open connections; None where an earlier release made it, which let code
            (`integrations.clusters.base.may_connect`).
        accelerator: the GPU, or slice of one, that each replica asks for by the file; `auto` leaves it open.
        placement: which that is, and why: {"accelerator", "products", "why"}; empty without a GPU.
        placement_wish: how replicas should be placed by the file: {"replicas", "latency"}; empty where it says nothing.
        logger: who is told of every request: {"url", "mode"}; empty for nobody.
        scale_behavior: how fast its replicas follow the load, in the words of autoscaling/v2; empty for the defaults.
        retire_at: a retiring or failed revision runs on until then and until the gateway sends it nothing.
        stopped_at: since when it runs no more; None while it should run.
        served_until: when the service was last stopped while this was its stable revision and had requests; None where
            that never was.
        kept_batch_size: the largest batch of the revision before, where its own version's profile found less.
        replicas: how many it should have while it runs; where minReplicas and maxReplicas differ, by its load.
        transformer: what stands before its predictor, as a service file says it; empty for nothing.
        transformer_replicas: how many of those there should be, by a cluster's autoscaler more of them.
        last_failure: the last failure of a replica of it (`deployments.domain.service_state.failures`); None where
            none failed.
        load: what that is decided by (`deployments.reconcile.participants.replicas`): counters of the last seconds,
            earlier decisions, and "why" in words.
    """

    service = models.ForeignKey(InferenceService, on_delete=models.CASCADE, related_name="revisions")
    number = models.PositiveIntegerField()
    name = models.CharField(max_length=63)
    model_version = models.ForeignKey("registry.ModelVersion", on_delete=models.PROTECT, related_name="revisions")
    artifact_digest = models.CharField(max_length=100)
    artifact_uri = models.TextField()
    min_replicas = models.PositiveIntegerField()
    max_replicas = models.PositiveIntegerField()
    scale_metric = models.CharField(max_length=100, blank=True)
    scale_target = models.FloatField(null=True)
    scale_behavior = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    container_concurrency = models.PositiveIntegerField(default=0)
    model_config = models.JSONField(default=dict)
    kept_batch_size = models.PositiveIntegerField(null=True)
    env = models.JSONField(default=dict)
    egress = models.BooleanField(null=True)
    patches = models.JSONField(default=dict)
    logger = models.JSONField(default=dict)
    cpu_cores = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    accelerator = models.CharField(max_length=63, blank=True, default="", db_default="")
    placement = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    placement_wish = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    role = models.CharField(max_length=10, choices=choices(Role))
    retire_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    served_until = models.DateTimeField(null=True)
    replicas = models.PositiveIntegerField()
    load = models.JSONField(default=dict)
    transformer = models.JSONField(default=dict)
    transformer_replicas = models.PositiveIntegerField(default=0, db_default=0)
    last_failure = models.JSONField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["service", "number"], name="revision_number_unique"),
            models.UniqueConstraint(fields=["service"], condition=Q(role=Role.STABLE), name="revision_one_stable"),
            models.UniqueConstraint(fields=["service"], condition=Q(role=Role.CANARY), name="revision_one_canary"),
        ]
        indexes = [
            models.Index(
                fields=["service"], condition=Q(stopped_at=None) & ~Q(accelerator=""), name="revision_with_gpu"
            ),
        ]

    def __str__(self) -> str:
        return self.name
