"""Service file values. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployments.domain.service_file.access import AccessPolicy
from deployments.domain.service_file.companion import Companion
from deployments.domain.service_file.objectives import Objectives
from deployments.domain.service_file.pools import ModelPool
from deployments.domain.service_file.predictor import CustomPredictor
from deployments.domain.service_file.scaling import Scaling
from integrations.clusters.base import (
    Arrangement,
    CompanionKind,
    Cors,
    DriftPolicy,
    Limits,
    Logger,
    Patch,
    PodFields,
    Resources,
    Rolling,
    SecretKeyRef,
)
from placement.packing.measured_latency import LatencyTarget

MOST_REVISIONS = 1000
"""Upper limit of `revision_history_limit`."""


@dataclass(frozen=True, slots=True)
class PlacementPreference:
    """The preferred placement of replicas.

    Attributes:
        replicas: None leaves it to the cluster.
        latency: the target for a slice that the platform chooses; None where any will do.
        sharing: the platform may choose a GPU or slice that several pods share.
    """

    replicas: Arrangement | None = None
    latency: LatencyTarget | None = None
    sharing: bool = False


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """The content of a service file.

    Attributes:
        egress: whether the model's process may open connections; None where the file does not say, which keeps it as it
            is.
        access: who may call it; None where the file does not say, which keeps it as it is.
        cors: which pages of other origins may call it from a browser; None for none.
        limits: of its requests; None where the file does not say, which keeps them as they are.
        objectives: its service level objectives; None for none.
        storage_uri: `models:/NAME/VERSION`, `models:/NAME@ALIAS`, or in its normal form the URI of files elsewhere;
            empty for a custom predictor and for a model pool.
        custom: the container in place of a model, whose `env` and `resources` are the spec's; None for a model.
        model_config: fields of a Triton ModelConfig laid over the model's own.
        secret_env: variables whose values are in secrets.
        logger: where every request and answer is sent; None without one.
        cluster: where it runs; empty where the file leaves it open.
        patches: patches of its rendered manifests.
        drift: the policy for changes made by hand on its cluster; None where the file does not say.
        transformer: the container in front of the predictor; None without one.
        explainer: the container for explain requests; None without one.
        request_timeout_s: timeout of an HTTP request; 0 is none.
        rolling: how replicas are replaced on its cluster; None where the file does not say.
        revision_history_limit: the number of failed and retired revisions to keep; None where the file does not say.
        policy: the rollout policy for later changes; None moves all traffic as soon as a new revision is ready.
        model_format: the file's name of the model's format, as in KServe.
        stopped: it does not run until resumed.
        pod: fields of the predictor's pods on Kubernetes.
        model_pool: what it is in place of a model; None for what serves by itself.
        pool: `namespace/name` of the model pool whose replicas serve its model; empty where it has its own.
        own_scaling: of one in a pool, the replicas that its load may earn it; None for none.
    """

    namespace: str
    name: str
    storage_uri: str
    scaling: Scaling
    env: Mapping[str, str]
    resources: Resources
    model_config: Mapping[str, object]
    policy: str | None
    secret_env: Mapping[str, SecretKeyRef] = field(default_factory=dict)
    logger: Logger | None = None
    cluster: str = ""
    drift: DriftPolicy | None = None
    patches: tuple[Patch, ...] = ()
    stopped: bool = False
    model_format: str = "onnx"
    transformer: Companion | None = None
    explainer: Companion | None = None
    custom: CustomPredictor | None = None
    request_timeout_s: int = 0
    rolling: Rolling | None = None
    placement: PlacementPreference = PlacementPreference()
    revision_history_limit: int | None = None
    egress: bool | None = None
    access: AccessPolicy | None = None
    cors: Cors | None = None
    limits: Limits | None = None
    objectives: Objectives | None = None
    pod: PodFields = field(default_factory=PodFields)
    model_pool: ModelPool | None = None
    pool: str = ""
    own_scaling: Scaling | None = None

    @property
    def companions(self) -> Mapping[CompanionKind, Companion]:
        """Return its companions by kind."""
        found = {CompanionKind.TRANSFORMER: self.transformer, CompanionKind.EXPLAINER: self.explainer}
        return {kind: its for kind, its in found.items() if its is not None}

    @property
    def follows_alias(self) -> bool:
        """Return whether the version is named by an alias, which may move."""
        return not self.is_imported and "@" in self.storage_uri

    @property
    def is_imported(self) -> bool:
        """Return whether the files are elsewhere and are imported as a version first."""
        return "://" in self.storage_uri


@dataclass(frozen=True, slots=True)
class RevisionContent:
    """The content of a revision, as far as a service file defines it; without `storage_uri` the file's own stays."""

    storage_uri: str | None
    model_format: str
    scaling: Scaling
    env: Mapping[str, str]
    secret_env: Mapping[str, SecretKeyRef]
    resources: Resources
    model_config: Mapping[str, object]
    logger: Logger | None
    patches: tuple[Patch, ...]
    transformer: Companion | None
    explainer: Companion | None
    custom: CustomPredictor | None
    placement: PlacementPreference
    egress: bool | None
    pod: PodFields
    model_pool: ModelPool | None = None
    pool: str = ""
    own_scaling: Scaling | None = None


def content_of(spec: ServiceSpec) -> RevisionContent:
    """Return the revision content of the file, to change a part of it."""
    return RevisionContent(
        storage_uri=None,
        model_format=spec.model_format,
        scaling=spec.scaling,
        env=spec.env,
        secret_env=spec.secret_env,
        resources=spec.resources,
        model_config=spec.model_config,
        logger=spec.logger,
        patches=spec.patches,
        transformer=spec.transformer,
        explainer=spec.explainer,
        custom=spec.custom,
        placement=spec.placement,
        egress=spec.egress,
        pod=spec.pod,
        model_pool=spec.model_pool,
        pool=spec.pool,
        own_scaling=spec.own_scaling,
    )
