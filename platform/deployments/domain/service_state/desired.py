"""What the cluster should run for a service: replicas and weights of each revision. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from deployments.domain.rollout.traffic_split import Portion
from deployments.domain.service_file.scaling import Scaling
from deployments.domain.service_file.transformer import Transformer
from integrations.clusters.base import (
    Arrangement,
    Autoscaling,
    Desired,
    DesiredRevision,
    DesiredTransformer,
    DriftPolicy,
    HeaderMatch,
    Logger,
    Patch,
    Resources,
    Rolling,
    SessionAffinity,
    Tap,
)


class Role(StrEnum):
    """Where a revision stands in its service.

    stable takes what no canary takes; canary is being rolled out, be it as a canary or a shadow; retiring gets no
    traffic and is kept warm; failed was rolled back; retired runs no more.
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
        is_code, egress: as of `DesiredRevision`.
        replicas: how many there should be now, within what `scaling` allows.
        transformer_replicas: the same of what stands before the predictor.
        retire_at: a retiring or failed revision runs on until then and until the gateway sends it nothing.
        stopped_at: since when it runs no more; None while it should run.
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
    is_code: bool = False
    egress: bool | None = False
    resources: Resources = field(default_factory=Resources)
    logger: Logger | None = None
    scaling: Scaling = field(default_factory=lambda: Scaling(1, 1))
    transformer: Transformer | None = None
    transformer_replicas: int = 0
    retire_at: datetime | None = None
    stopped_at: datetime | None = None
    patches: tuple[Patch, ...] = ()
    arrangement: Arrangement | None = None


@dataclass(frozen=True, slots=True)
class ServiceState:
    """A service as recorded.

    Attributes:
        live: its stable revision was ready once; until then no weight is given.
        canary: what the canary or shadow should get of the requests; nothing without a rollout.
        affinity: by what requests belong together in the rollout; None leaves each to chance.
        is_shadow: the canary is to be tried out on copies alone.
        has_preview: the canary answers at the preview address.
        shares_replicas: its rollout takes the canary's replicas out of stable's, so that nobody else sets them.
        stopped: nothing of it is to run, and it gets no requests.
        restart_number: replicas of a lower one are to be started anew.
        compared_percent: of the requests whose answers by stable and by the canary are to be compared.
        recorded_percent: of the requests to stable that are to be kept with their answers.
        drift: what becomes of changes made by hand on its cluster.
        request_timeout_s: so long after its beginning an HTTP request is given up; 0 is never.
        rolling: how its replicas are replaced; None leaves it to the cluster.
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
    drift: DriftPolicy = DriftPolicy.HEAL
    request_timeout_s: int = 0
    rolling: Rolling | None = None

    def first(self, role: Role) -> RevisionState | None:
        """Return the revision of a role that only one can have."""
        return next((revision for revision in self.revisions if revision.role is role), None)


def weight_of(service: ServiceState, revision: RevisionState) -> int:
    """Return the percent of requests `revision` should get; over a live service's revisions they sum to 100."""
    if not service.live:
        return 0
    if revision.role is Role.STABLE:
        return 100 - service.canary.weight
    return service.canary.weight if revision.role is Role.CANARY else 0


def mirror_of(service: ServiceState, revision: RevisionState) -> int:
    """Return the percent of requests `revision` should get a copy of."""
    return service.canary.mirror if service.live and revision.role is Role.CANARY else 0


def match_of(service: ServiceState, revision: RevisionState) -> tuple[HeaderMatch, ...]:
    """Return the headers that name the group whose requests are `revision`'s."""
    return service.canary.match if service.live and revision.role is Role.CANARY else ()


def affinity_of(service: ServiceState) -> SessionAffinity | None:
    """Return by what requests belong together; a session of the canary stays with it while its weight rises."""
    canary = service.first(Role.CANARY)
    return (
        replace(service.affinity, revision=canary.name) if service.affinity is not None and canary is not None else None
    )


def tap_of(service: ServiceState, revision: RevisionState) -> Tap | None:
    """Return which of a revision's requests are wanted with their answers; None where nobody wants any."""
    share = service.compared_percent if revision.role in (Role.STABLE, Role.CANARY) else 0.0
    if revision.role is Role.STABLE:
        share = max(share, service.recorded_percent)
    return Tap(share) if share else None


def autoscaling_of(revision: RevisionState) -> Autoscaling | None:
    """Return how far a cluster's own autoscaler may go; None where the number of replicas does not follow the load."""
    scaling = revision.scaling
    if not scaling.is_automatic:
        return None
    targets = {str(metric): target for metric, target in scaling.targets.items()}
    return Autoscaling(scaling.max_replicas, targets, scaling.behavior)


def transformer_of(revision: RevisionState, *, stopped: bool) -> DesiredTransformer | None:
    """Return what stands before a revision's predictor; None for nothing."""
    its = revision.transformer
    if its is None:
        return None
    targets = {its.scale_metric.value: its.scale_percent}
    return DesiredTransformer(
        image=its.image,
        replicas=0 if stopped else revision.transformer_replicas,
        command=its.command,
        args=its.args,
        env=its.env,
        resources=its.resources,
        http_port=its.http_port,
        grpc_port=its.grpc_port,
        autoscaling=Autoscaling(its.max_replicas, targets) if its.is_automatic and not stopped else None,
    )


def preview_of(service: ServiceState) -> str:
    """Return the revision that answers at the preview address; empty where there is no such address."""
    canary = service.first(Role.CANARY)
    return canary.name if service.has_preview and canary is not None and canary.stopped_at is None else ""


def foreseen_of(service: ServiceState, portions: Iterable[Portion], generation: int) -> tuple[Desired, ...]:
    """Return what the cluster is asked for now, and what it will be when the canary gets each of these portions."""
    states = (replace(service, live=True, canary=portion) for portion in portions)
    return (desired_of(service, generation), *(desired_of(state, generation) for state in states))


def desired_of(service: ServiceState, generation: int) -> Desired:
    """Return everything the cluster should have for `service`; stopped revisions are left out.

    Of a stopped service the cluster keeps to know its revisions, of which nothing runs.
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
                replicas=0 if service.stopped else revision.replicas,
                weight_percent=weight_of(service, revision),
                model_config=revision.model_config,
                env=revision.env,
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
                transformer=transformer_of(revision, stopped=service.stopped),
                arrangement=revision.arrangement,
            )
            for revision in service.revisions
            if revision.stopped_at is None
        ),
        preview=preview_of(service),
        affinity=affinity_of(service),
        drift=service.drift,
        request_timeout_s=service.request_timeout_s,
        rolling=service.rolling,
    )
