"""What the reconciler says should be. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from integrations.clusters.base.drift import DriftPolicy
from integrations.clusters.base.patches import Patch
from integrations.clusters.base.rolling import Rolling
from integrations.clusters.base.scaling import Behavior

PREVIEW_SUFFIX = "-preview"
"""A service's preview is reached as the service is, under its name with this at the end."""


@dataclass(frozen=True, slots=True)
class Resources:
    """What one replica asks for; None leaves it to the cluster.

    Attributes:
        accelerator: the extended resource of which it gets one, such as `nvidia.com/mig-1g.10gb`: a slice of a GPU, or
            a whole one; empty for none.
        products: of the node, by its label `nvidia.com/gpu.product`, of which one has to be there; none leaves it open.
    """

    cpu_cores: float | None = None
    memory_bytes: int | None = None
    accelerator: str = ""
    products: tuple[str, ...] = ()


class Arrangement(StrEnum):
    """Where replicas go among nodes that do alike.

    PACK: onto the node that has the least room left, so that others stay free to be cut anew or taken away.
    SPREAD: onto the node that has the fewest replicas of the same model, so that a node's loss costs least.
    """

    PACK = "pack"
    SPREAD = "spread"


class MatchKind(StrEnum):
    """How a header's value is compared: with a whole value, with a beginning, with several whole values."""

    EXACT = "exact"
    PREFIX = "prefix"
    ANY_OF = "anyOf"


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """What one header of a request, or entry of a gRPC call's metadata, has to be.

    Attributes:
        header: its name in lower case.
        values: one value; several only for ANY_OF.
    """

    header: str
    kind: MatchKind
    values: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as a part of a sentence, such as `x-group: beta`."""
        star = "*" if self.kind is MatchKind.PREFIX else ""
        return f"{self.header}: {' or '.join(self.values)}{star}"


@dataclass(frozen=True, slots=True)
class SessionAffinity:
    """By what requests belong together, so that the same revision answers them: a header's value, or a cookie's.

    Attributes:
        revision: the one whose share rises; a session that it answers stays with it while it does.
        header: its name in lower case; empty where it is a cookie.
        cookie: its name; the gateway gives one to whoever has none.
        cookie_ttl_s: for how long a client keeps the cookie.
    """

    revision: str
    header: str = ""
    cookie: str = ""
    cookie_ttl_s: int = 0


@dataclass(frozen=True, slots=True)
class Tap:
    """Which of a revision's inference requests are recorded with their answers, for `ClusterDriver.exchanges`.

    A request is in the share by its `x-request-id` alone, so that revisions which see the same requests record the
    same ones of them.
    """

    share_percent: float


class Logged(StrEnum):
    """What a payload logger tells, in KServe's words."""

    ALL = "all"
    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Logger:
    """Where every request and answer of a revision is told as a CloudEvent, as KServe's payload logger does."""

    url: str
    mode: Logged = Logged.ALL


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """How far above `replicas` a cluster's own autoscaler, where it has one, may follow the load.

    Attributes:
        most: the highest number of replicas.
        targets: what each replica should have of `concurrency`, `rps`, `avg_time_queue_ms`, or of `pods/<metric>`, a
            metric of pods that the cluster's metrics have; of `cpu` percent of what it requests.
        behavior: how fast.
    """

    most: int
    targets: Mapping[str, float]
    behavior: Behavior = field(default_factory=Behavior)


@dataclass(frozen=True, slots=True)
class DesiredTransformer:
    """A container that takes a revision's requests in the place of its predictor, and asks that one itself.

    Attributes:
        replicas: how many should run.
        command, args: in the place of the image's own; empty leaves those.
        http_port, grpc_port: where it takes V2 requests and is asked for its health.
        autoscaling: its targets are `cpu` and `memory`, in percent of what it requests; None where the number stays.
    """

    image: str
    replicas: int
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = Resources()
    http_port: int = 8080
    grpc_port: int = 8081
    autoscaling: Autoscaling | None = None


@dataclass(frozen=True, slots=True)
class DesiredRevision:
    """One immutable revision as the cluster should run it now.

    Attributes:
        name: DNS label, unique within the namespace, such as `digits-00002`.
        model_name: what V2 clients ask for: the service's name.
        model_version: the registry's version number in decimal; V2's `model_version`.
        artifact_uri: folder with the model files (`file:///…` on the local driver).
        artifact_digest: digest the files must have.
        artifact_origin: where the same files were imported from (s3, gs, http, https), for who may read there; empty
            where they were pushed.
        is_code: a model in Python, or an ensemble that may have such steps; where the cluster runs no such models it is
            none. Code gets more of `env` (`environment`).
        egress: whether the model's process may open connections (`may_connect`).
        replicas: how many should run; 0 keeps the revision known but stopped.
        weight_percent: share of requests it should get, 0..100; over the ready revisions of a service they sum to 100.
        model_config: fields of a Triton ModelConfig laid over what the artifact brings; empty leaves it alone.
        mirror_percent: share of the service's inference requests of which it should get a copy, 0..100; nobody gets
            the answers to copies.
        match: requests that match all of these go to it, whatever its share; empty gives it none but its share.
        max_concurrent_requests: so many requests at once in a replica, further ones wait; 0 is no limit.
        restart_number: where it rises, every replica is replaced by one that begins anew, one after the other.
        logger: None where nobody is told of every request.
        autoscaling: None where the number of replicas does not follow the load.
        transformer: None where requests go to the predictor itself.
        patches: changes of what is rendered for it on the cluster, in order.
        tap: which requests to record; None for none. It comes and goes without a restart.
        arrangement: None leaves it to the cluster.
    """

    name: str
    model_name: str
    model_version: str
    artifact_uri: str
    artifact_digest: str
    replicas: int
    weight_percent: int
    model_config: Mapping[str, object] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    is_code: bool = False
    egress: bool | None = False
    resources: Resources = Resources()
    mirror_percent: int = 0
    restart_number: int = 0
    max_concurrent_requests: int = 0
    match: tuple[HeaderMatch, ...] = ()
    tap: Tap | None = None
    autoscaling: Autoscaling | None = None
    artifact_origin: str = ""
    logger: Logger | None = None
    transformer: DesiredTransformer | None = None
    patches: tuple[Patch, ...] = ()
    arrangement: Arrangement | None = None


@dataclass(frozen=True, slots=True)
class Desired:
    """Everything one service should have on a cluster; `generation` only rises and lower ones are ignored.

    Attributes:
        preview: the revision that answers at the service's preview address; empty where there is no such address.
        affinity: None leaves every request to chance.
        drift: what becomes of changes that were made by hand, where a cluster has such.
        request_timeout_s: so long after its beginning an HTTP request is given up; 0 is never. gRPC clients say so
            themselves.
        rolling: how a revision's replicas are replaced; None leaves it to the driver.
    """

    namespace: str
    service: str
    generation: int
    revisions: tuple[DesiredRevision, ...]
    preview: str = ""
    affinity: SessionAffinity | None = None
    drift: DriftPolicy = DriftPolicy.HEAL
    request_timeout_s: int = 0
    rolling: Rolling | None = None


def may_connect(egress: bool | None, *, is_code: bool) -> bool:
    """Return whether a model's process may open connections to the network.

    Args:
        egress: of the revision; None where it was made before revisions had the field, when code could connect.
        is_code: the model is code, and its cluster runs such.
    """
    return is_code if egress is None else egress
