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
    """An inference service.

    Attributes:
        document: the service file as it was last applied.
        model_version: the registry version that the file's `storageUri` last resolved to; None while the first is
            imported.
        awaited_import: the import of the file's version; None where that exists. `import_note` is its progress.
        alias_problem: why the alias's present version cannot be rolled out; empty where it can.
        standing: what it waits for on the cluster (`deployments.domain.waits.Condition`); empty for nothing.
        refusal: why the cluster refused the last desired state; empty where it did not.
        waits_for, waits_since: its wait condition, and when that began.
        live_at: when its first revision first accepted requests; from then on the weights sum to 100.
        stopped: it does not run until resumed.
        generation: number of the desired state; rises when that changes, and the cluster ignores lower ones.
        changes: rises with every recorded change; a reader of an older number must read again.
        changed_at: when `changes` last rose, by the database's clock.
        settled: the number of `changes` at which a tick found the service settled; with any other number, such as those
            of `deployments.domain.service_state.quiescence`, the next sweep reconciles it
            (`deployments.reconcile.schedule`).
        lease_owner, lease_expires_at: which reconciler holds the service now.
        ticked_at, seen_at: when a reconciler last ticked the service, and when it last could read the cluster.
        event_seq, revision_seq: the last numbers assigned.
        request_id: the request that last changed the service, for which the reconciler acts; empty without one.
        observed: the last observation of the cluster: revision name -> {"weight", "mirror", "ready", "restarts",
            "restart_numbers", "metrics_urls", "message", "is_failing", "replicas"}.
        replica_restarts: restarts of each replica that have events.
        restart_number: rises when all its replicas are to be restarted.
        recorded_percent: of its requests that are recorded now (`models.Recording`); 0 for none.
        kept_percent: of its requests whose answers are kept for feedback (`feedback.models.Kept`); 0 for none.
        drift_policy: the policy for changes made by hand on its cluster (`DriftPolicy`).
        drift: the changes found (`deployments.domain.service_state.drift`).
        request_timeout_s: timeout of an HTTP request; 0 is none.
        rolling: how its replicas are replaced, `{"maxSurge", "maxUnavailable"}`; None leaves it to the cluster.
        access: who may call it, as `access_json` writes it; None, of before there were policies, is everybody.
        cors: which pages of other origins may call it, as `cors_json` writes it; None for none.
        limits: of its requests, as `limits_json` writes them; None, of before there were any, is without limits.
        owner_object: the custom resource that it follows, as `owner_json` writes it; None for one of API and pages.
        traffic_at: when its counters were last sampled for pages (`deployments.reconcile.participants.traffic`).
        tap_cursor: up to where the recordings of its replicas' taps were processed.
        searched: the text for searches (`deployments.mapping.put_searched`).
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
    kept_percent = models.FloatField(default=0, db_default=0)
    drift_policy = models.CharField(
        max_length=10, choices=choices(DriftPolicy), default=DriftPolicy.HEAL, db_default=DriftPolicy.HEAL
    )
    drift = models.JSONField(default=list)
    request_timeout_s = models.PositiveIntegerField(default=0, db_default=0)
    rolling = models.JSONField(null=True)
    access = models.JSONField(null=True)
    cors = models.JSONField(null=True)
    limits = models.JSONField(null=True)
    owner_object = models.JSONField(null=True)
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
    """A revision of a service: model digest, configuration, resources and scaling as one. Those never change.

    Attributes:
        number: counts up within the service; the name is `<service>-<5 digits>`.
        role: `deployments.domain.service_state.desired.Role`.
        patches: as of its creation: {"cluster": [...], "service": [...]}, as the files have them.
        secret_env: references to secrets by the names of variables: {"HF_TOKEN": {"name", "key"}}.
        egress: whether the model's process may open connections; None in rows of an earlier release, which let code
            (`integrations.clusters.base.may_connect`).
        accelerator: the GPU, or slice of one, that each replica requests by the file; `auto` leaves it open.
        placement: the assigned one, and why: {"accelerator", "products", "why"}; empty without a GPU.
        placement_wish: the file's preferred placement of replicas: {"replicas", "latency"}; empty without one.
        logger: where every request is sent: {"url", "mode"}; empty without one.
        scale_behavior: how fast its replicas follow the load, in the words of autoscaling/v2; empty for the defaults.
        pod: the file's fields of the predictor's pods (`service_file.pods.pod_json`); empty without any.
        retire_at: a retiring or failed revision runs on until then and until the gateway sends it nothing.
        stopped_at: when it stopped running; None while it should run.
        served_until: when the service was last stopped while this was its stable revision and had requests; None where
            that never happened.
        kept_batch_size: the largest batch of the revision before, where its own version's profile found less.
        replicas: the desired number while it runs; where minReplicas and maxReplicas differ, by its load.
        custom: the container of a custom predictor, as `spec.predictor` of a service file has it; empty for a model.
            The model version then represents its image (`registry.services.images`).
        model_pool: what a model pool has in place of a model (`service_file.pools.model_pool_json`); empty for what
            serves by itself. The model version then represents the pool, and has no files.
        pool: `namespace/name` of the pool whose replicas serve its model; empty where it has its own.
        own_scaling: the scaling of the replicas that load earns it beside its pool (`mapping.own_scaling_of`); empty
            where it has none. `own_replicas` is their desired number.
        transformer: the container in front of its predictor, as in a service file; empty without one.
        transformer_replicas: the least number of those; a cluster's autoscaler may add more.
        explainer, explainer_replicas: the same of the container for explain requests.
        pod_templates: the pinned pod templates of its Deployments by their names; empty until its replicas were ready
            once (`deployments.reconcile.participants.pod_templates`), and on this machine.
        template_changes: how its pinned pod templates differ from those that would be rendered now, as a sentence;
            empty where they do not.
        last_failure: the last failure of one of its replicas (`deployments.domain.service_state.failures`); None
            without one.
        load: the input of the replica count (`deployments.reconcile.participants.replicas`): counters of the last
            seconds, earlier decisions, and "why" in words.
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
    secret_env = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    egress = models.BooleanField(null=True)
    patches = models.JSONField(default=dict)
    logger = models.JSONField(default=dict)
    cpu_cores = models.FloatField(null=True)
    memory_bytes = models.BigIntegerField(null=True)
    accelerator = models.CharField(max_length=63, blank=True, default="", db_default="")
    placement = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    placement_wish = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    pod = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=300)
    role = models.CharField(max_length=10, choices=choices(Role))
    retire_at = models.DateTimeField(null=True)
    stopped_at = models.DateTimeField(null=True)
    served_until = models.DateTimeField(null=True)
    replicas = models.PositiveIntegerField()
    load = models.JSONField(default=dict)
    custom = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    model_pool = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    pool = models.CharField(max_length=127, blank=True, default="", db_default="")
    own_scaling = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    own_replicas = models.PositiveIntegerField(default=0, db_default=0)
    transformer = models.JSONField(default=dict)
    transformer_replicas = models.PositiveIntegerField(default=0, db_default=0)
    explainer = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    explainer_replicas = models.PositiveIntegerField(default=0, db_default=0)
    pod_templates = models.JSONField(default=dict, db_default=models.Value({}, output_field=models.JSONField()))
    template_changes = models.TextField(blank=True, default="", db_default="")
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
            models.Index(
                fields=["service"], condition=Q(stopped_at=None) & ~Q(template_changes=""), name="revision_outdated"
            ),
            models.Index(fields=["pool"], condition=Q(stopped_at=None) & ~Q(pool=""), name="revision_in_pool"),
        ]

    def __str__(self) -> str:
        return self.name
