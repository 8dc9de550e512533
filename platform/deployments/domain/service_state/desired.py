"""Desired state of a service on its cluster: replicas and weights of each revision. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from deployments.domain.rollout.traffic_split import Portion
from deployments.domain.service_file.companion import Companion
from deployments.domain.service_file.pools import ModelPool
from deployments.domain.service_file.predictor import CustomPredictor
from deployments.domain.service_file.scaling import Scaling
from integrations.clusters.base import (
    Access,
    Arrangement,
    Autoscaling,
    CompanionKind,
    Cors,
    Desired,
    DesiredCompanion,
    DesiredPredictor,
    DesiredRevision,
    DriftPolicy,
    HeaderMatch,
    Limits,
    Logger,
    Patch,
    PodFields,
    PodTemplates,
    Resources,
    Rolling,
    SecretKeyRef,
    SessionAffinity,
    Tap,
)


class Role(StrEnum):
    """The role of a revision in its service.

    stable gets the traffic that no canary gets; canary is being rolled out, as a canary or a shadow; retiring gets no
    traffic and is kept warm; failed was rolled back; retired no longer runs.
    """

    STABLE = "stable"
    CANARY = "canary"
    RETIRING = "retiring"
    RETIRED = "retired"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class RevisionState:
    """A revision as recorded.

    Attributes:
        artifact_origin: where the model's files were imported from; empty where they were pushed.
        artifact_bytes: size of the model's files.
        custom: the container in place of a model; None for a model.
        secret_env, is_code, egress, pod, pool, pool_copies: as of `DesiredRevision`.
        model_pool: what it is in place of a model; None for what serves by itself.
        replicas: the desired number now, within `scaling`.
        transformer_replicas, explainer_replicas: the same of its transformers and explainers.
        retire_at: a retiring or failed revision runs on until then and until the gateway sends it nothing.
        stopped_at: when it stopped running; None while it should run.
        pod_templates: as of `DesiredRevision`.
        served_until: when the service was last stopped while this had its requests; None where it never was.
        slept_at: as of `DesiredRevision`.
        own_scaling: of one in a pool, the replicas that its load may earn it; None for none.
        own_replicas, own_since: as of `DesiredRevision`.
    """

    name: str
    role: Role
    model_version: str
    artifact_uri: str
    artifact_digest: str
    replicas: int
    artifact_origin: str = ""
    model_config: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, SecretKeyRef] = field(default_factory=dict)
    is_code: bool = False
    egress: bool | None = False
    resources: Resources = field(default_factory=Resources)
    logger: Logger | None = None
    scaling: Scaling = field(default_factory=lambda: Scaling(1, 1))
    custom: CustomPredictor | None = None
    transformer: Companion | None = None
    transformer_replicas: int = 0
    explainer: Companion | None = None
    explainer_replicas: int = 0
    retire_at: datetime | None = None
    stopped_at: datetime | None = None
    patches: tuple[Patch, ...] = ()
    arrangement: Arrangement | None = None
    pod_templates: PodTemplates = field(default_factory=dict)
    served_until: datetime | None = None
    artifact_bytes: int = 0
    pod: PodFields = field(default_factory=PodFields)
    model_pool: ModelPool | None = None
    pool: str = ""
    pool_copies: Mapping[str, int] = field(default_factory=dict)
    slept_at: float | None = None
    own_scaling: Scaling | None = None
    own_replicas: int = 0
    own_since: float = 0.0

    @property
    def is_asleep(self) -> bool:
        """Return whether it has no replicas and wakes with the first request."""
        return self.slept_at is not None and not self.replicas and self.stopped_at is None

    @property
    def companions(self) -> Mapping[CompanionKind, Companion]:
        """Return its companions with replicas of their own, by kind; a program is part of each replica."""
        return {kind: its for kind, its in self.containers.items() if not its.working_dir}

    @property
    def containers(self) -> Mapping[CompanionKind, Companion]:
        """Return all its companions, by kind."""
        found = {CompanionKind.TRANSFORMER: self.transformer, CompanionKind.EXPLAINER: self.explainer}
        return {kind: its for kind, its in found.items() if its is not None}

    def companion_replicas(self, kind: CompanionKind) -> int:
        """Return the desired number of companions of a kind."""
        return self.transformer_replicas if kind is CompanionKind.TRANSFORMER else self.explainer_replicas


@dataclass(frozen=True, slots=True)
class ServiceState:
    """A service as recorded.

    Attributes:
        live: its stable revision was ready once; until then it has no weights.
        canary: the desired portion of the canary or shadow; empty without a rollout.
        affinity: the session key of requests in the rollout; None leaves each to chance.
        is_shadow: the canary gets only copies.
        has_preview: the canary answers at the preview address.
        shares_replicas: its rollout replaces stable's replicas by the canary's, so that nothing else sets their number.
        stopped: it does not run, and gets no requests.
        restart_number: replicas with a lower number are to be restarted.
        compared_percent: of the requests whose answers are compared between stable and the canary.
        recorded_percent: of the requests to stable that are recorded with their answers.
        kept_percent: of the requests whose answers by stable and the canary are kept for feedback.
        drift: the policy for changes made by hand on its cluster.
        request_timeout_s: timeout of an HTTP request; 0 is none.
        rolling: how its replicas are replaced; None leaves it to the cluster.
        access: who may call it; None for everybody.
        cors: which pages of other origins may call it from a browser; None for none.
        limits: of its requests.
        shared_with: of a pool, as of `Desired`.
    """

    namespace: str
    name: str
    live: bool
    canary: Portion
    revisions: tuple[RevisionState, ...]
    affinity: SessionAffinity | None = None
    is_shadow: bool = False
    has_preview: bool = False
    stopped: bool = False
    shares_replicas: bool = False
    restart_number: int = 0
    compared_percent: float = 0.0
    recorded_percent: float = 0.0
    kept_percent: float = 0.0
    drift: DriftPolicy = DriftPolicy.HEAL
    request_timeout_s: int = 0
    rolling: Rolling | None = None
    access: Access | None = None
    cors: Cors | None = None
    limits: Limits = field(default_factory=Limits)
    shared_with: tuple[str, ...] = ()

    def first(self, role: Role) -> RevisionState | None:
        """Return the revision of a role that is unique."""
        return next((revision for revision in self.revisions if revision.role is role), None)


def weight_of(service: ServiceState, revision: RevisionState) -> int:
    """Return the desired percent of requests of `revision`; over a live service's revisions they sum to 100."""
    if not service.live:
        return 0
    if revision.role is Role.STABLE:
        return 100 - service.canary.weight
    return service.canary.weight if revision.role is Role.CANARY else 0


def mirror_of(service: ServiceState, revision: RevisionState) -> int:
    """Return the percent of requests that are copied to `revision`."""
    return service.canary.mirror if service.live and revision.role is Role.CANARY else 0


def match_of(service: ServiceState, revision: RevisionState) -> tuple[HeaderMatch, ...]:
    """Return the headers of the group whose requests go to `revision`."""
    return service.canary.match if service.live and revision.role is Role.CANARY else ()


def affinity_of(service: ServiceState) -> SessionAffinity | None:
    """Return the session key of requests; a session of the canary stays with it while its weight rises."""
    canary = service.first(Role.CANARY)
    return (
        replace(service.affinity, revision=canary.name) if service.affinity is not None and canary is not None else None
    )


def tap_of(service: ServiceState, revision: RevisionState) -> Tap | None:
    """Return which of a revision's requests are recorded with their answers; None where none are."""
    share = 0.0
    if revision.role in (Role.STABLE, Role.CANARY):
        share = max(service.compared_percent, service.kept_percent)
    if revision.role is Role.STABLE:
        share = max(share, service.recorded_percent)
    return Tap(share) if share else None


def autoscaling_of(revision: RevisionState) -> Autoscaling | None:
    """Return the range of a cluster's own autoscaler; None where the number of replicas does not follow the load."""
    scaling = revision.scaling
    if not scaling.is_automatic:
        return None
    targets = {str(metric): target for metric, target in scaling.targets.items()}
    return Autoscaling(scaling.max_replicas, targets, scaling.behavior)


def companion_of(revision: RevisionState, kind: CompanionKind, *, stopped: bool) -> DesiredCompanion | None:
    """Return a companion of a revision's predictor; None without one of this kind."""
    its = revision.containers.get(kind)
    if its is None:
        return None
    targets = {its.scale_metric.value: its.scale_percent}
    return DesiredCompanion(
        image=its.image,
        replicas=0 if stopped else revision.companion_replicas(kind),
        command=its.command,
        args=its.args,
        env=its.env,
        secret_env=its.secret_env,
        resources=its.resources,
        http_port=its.http_port,
        grpc_port=its.grpc_port,
        autoscaling=Autoscaling(its.max_replicas, targets) if its.is_automatic and not stopped else None,
        working_dir=its.working_dir,
    )


def custom_of(revision: RevisionState) -> DesiredPredictor | None:
    """Return the container that answers in place of a model; None for a model."""
    its = revision.custom
    if its is None:
        return None
    return DesiredPredictor(
        its.image, its.protocol.value, its.command, its.args, its.port, its.ready_path, its.working_dir
    )


def has_served(service: ServiceState, revision: RevisionState) -> bool:
    """Return whether a revision had ready replicas once; a canary that is being started counts as one that had none."""
    is_main = service.live and revision.role in (Role.STABLE, Role.RETIRING)
    return is_main or revision.served_until is not None or bool(revision.pod_templates)


def preview_of(service: ServiceState) -> str:
    """Return the revision that answers at the preview address; empty without such an address."""
    canary = service.first(Role.CANARY)
    return canary.name if service.has_preview and canary is not None and canary.stopped_at is None else ""


def foreseen_of(service: ServiceState, portions: Iterable[Portion], generation: int) -> tuple[Desired, ...]:
    """Return the cluster's desired state now, and for each of these portions of the canary."""
    states = (replace(service, live=True, canary=portion) for portion in portions)
    return (desired_of(service, generation), *(desired_of(state, generation) for state in states))


def desired_of(service: ServiceState, generation: int) -> Desired:
    """Return everything the cluster should have for `service`; stopped revisions are left out.

    The cluster keeps the names of a stopped service's revisions, of which nothing runs.
    """
    return Desired(
        namespace=service.namespace,
        service=service.name,
        generation=generation,
        revisions=tuple(
            DesiredRevision(
                name=revision.name,
                model_name=service.name,
                model_version=revision.model_version,
                artifact_uri=revision.artifact_uri,
                artifact_digest=revision.artifact_digest,
                artifact_origin=revision.artifact_origin,
                artifact_bytes=revision.artifact_bytes,
                replicas=0 if service.stopped else revision.replicas,
                weight_percent=weight_of(service, revision),
                model_config=revision.model_config,
                env=revision.env,
                secret_env=revision.secret_env,
                is_code=revision.is_code,
                egress=revision.egress,
                resources=revision.resources,
                mirror_percent=mirror_of(service, revision),
                match=match_of(service, revision),
                restart_number=service.restart_number,
                max_concurrent_requests=revision.scaling.container_concurrency,
                tap=tap_of(service, revision),
                autoscaling=None if service.stopped or service.shares_replicas else autoscaling_of(revision),
                logger=revision.logger,
                patches=revision.patches,
                custom=custom_of(revision),
                transformer=companion_of(revision, CompanionKind.TRANSFORMER, stopped=service.stopped),
                explainer=companion_of(revision, CompanionKind.EXPLAINER, stopped=service.stopped),
                arrangement=revision.arrangement,
                pod=revision.pod,
                pod_templates=revision.pod_templates,
                has_served=has_served(service, revision),
                is_pool=revision.model_pool is not None,
                pool_memory_bytes=0 if revision.model_pool is None else revision.model_pool.memory_budget_bytes,
                pool=revision.pool,
                pool_copies=revision.pool_copies,
                slept_at=None if service.stopped else revision.slept_at,
                may_sleep=revision.scaling.may_sleep,
                own_replicas=0 if service.stopped else revision.own_replicas,
                own_since=revision.own_since,
            )
            for revision in service.revisions
            if revision.stopped_at is None
        ),
        preview=preview_of(service),
        affinity=affinity_of(service),
        drift=service.drift,
        request_timeout_s=service.request_timeout_s,
        rolling=service.rolling,
        access=service.access,
        cors=service.cors,
        limits=service.limits,
        shared_with=service.shared_with,
    )
