"""What service files say, as values. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from deployments.domain.service_file.scaling import Scaling
from deployments.domain.service_file.transformer import Transformer
from integrations.clusters.base import Arrangement, DriftPolicy, Logger, Patch, Resources, Rolling
from placement.packing.measured_latency import LatencyTarget

MOST_REVISIONS = 1000
"""So many failed and retired revisions may be asked to stay."""


@dataclass(frozen=True, slots=True)
class PlacementWish:
    """How replicas should be placed.

    Attributes:
        replicas: None leaves it to the cluster.
        latency: what a slice that the platform chooses has to reach; None where any will do.
        sharing: the platform may choose a GPU or slice that the cluster has several pods share.
    """

    replicas: Arrangement | None = None
    latency: LatencyTarget | None = None
    sharing: bool = False


@dataclass(frozen=True, slots=True)
class ServiceSpec:
    """What a service file asks for.

    Attributes:
        egress: whether the model's process may open connections; None where the file does not say, which leaves it
            as it is.
        storage_uri: `models:/NAME/VERSION`, `models:/NAME@ALIAS`, or in its normal form the URI of files elsewhere.
        model_config: fields of a Triton ModelConfig laid over the model's own.
        logger: who is told of every request and answer; None for nobody.
        cluster: where it runs; empty where the file leaves it open.
        patches: changes of what is rendered for it on its cluster.
        drift: what becomes of changes made by hand on its cluster; None where the file does not say.
        transformer: what stands before the predictor; None for nothing.
        request_timeout_s: so long after its beginning an HTTP request is given up; 0 is never.
        rolling: how replicas are replaced on its cluster; None where the file does not say.
        revision_history_limit: so many failed and retired revisions stay; None where the file does not say.
        policy: the rollout policy for later changes; None moves all traffic as soon as a new revision is ready.
        model_format: what the file calls the model, as KServe does.
        stopped: nothing of it is to run until it is resumed.
    """

    namespace: str
    name: str
    storage_uri: str
    scaling: Scaling
    env: Mapping[str, str]
    resources: Resources
    model_config: Mapping[str, object]
    policy: str | None
    logger: Logger | None = None
    cluster: str = ""
    drift: DriftPolicy | None = None
    patches: tuple[Patch, ...] = ()
    stopped: bool = False
    model_format: str = "onnx"
    transformer: Transformer | None = None
    request_timeout_s: int = 0
    rolling: Rolling | None = None
    placement: PlacementWish = PlacementWish()
    revision_history_limit: int | None = None
    egress: bool | None = None

    @property
    def follows_alias(self) -> bool:
        """Return whether the version is found by an alias, which may move."""
        return not self.is_imported and "@" in self.storage_uri

    @property
    def is_imported(self) -> bool:
        """Return whether the files are elsewhere and become a version first."""
        return "://" in self.storage_uri


@dataclass(frozen=True, slots=True)
class RevisionContent:
    """What a revision serves, as far as a service file says it; without `storage_uri` the file's own stays."""

    storage_uri: str | None
    scaling: Scaling
    env: Mapping[str, str]
    resources: Resources
    model_config: Mapping[str, object]
    logger: Logger | None
    patches: tuple[Patch, ...]
    transformer: Transformer | None
    placement: PlacementWish
    egress: bool | None


def content_of(spec: ServiceSpec) -> RevisionContent:
    """Return what the file says of its revision, to change a part of it."""
    return RevisionContent(
        storage_uri=None,
        scaling=spec.scaling,
        env=spec.env,
        resources=spec.resources,
        model_config=spec.model_config,
        logger=spec.logger,
        patches=spec.patches,
        transformer=spec.transformer,
        placement=spec.placement,
        egress=spec.egress,
    )
