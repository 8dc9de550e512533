"""Desired state of a service, as the reconciler sets it. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from integrations.clusters.base.callers import Access, Cors, Limits
from integrations.clusters.base.drift import DriftPolicy
from integrations.clusters.base.pods import PodFields
from integrations.clusters.base.scaling import Behavior


@dataclass(frozen=True, slots=True)
class Rolling:
    """How many replicas may be surplus, and how many missing, while they are replaced.

    Attributes:
        max_surge: a number, or a percentage of the replicas such as `25%`, rounded up.
        max_unavailable: the same, rounded down.
    """

    max_surge: int | str = 1
    max_unavailable: int | str = 0

    def leaves_one(self, replicas: int) -> bool:
        """Return whether of so many replicas, or of more, one always serves.

        Where both numbers are 0 one replica is taken away (Kubernetes: Deployment, `ResolveFenceposts`).
        """
        surge, unavailable = _number(self.max_surge), _number(self.max_unavailable)
        if isinstance(self.max_unavailable, str):
            unavailable = unavailable * replicas // 100
        return (unavailable or (0 if surge else 1)) < replicas


def _number(amount: int | str) -> int:
    return int(str(amount).removesuffix("%"))


@dataclass(frozen=True, slots=True)
class SecretKeyRef:
    """One value of a secret in the namespace of a service.

    On Kubernetes it is a Secret of the cluster; on the local cluster the control plane passes its value to the driver.
    """

    name: str
    key: str


@dataclass(frozen=True, slots=True)
class Patch:
    """One change of the objects of a kind; either operations (RFC 6902) or a merge patch (RFC 7386).

    Attributes:
        name: its path, for messages, such as `spec.patches[0]`.
        kind: of the objects, such as `Deployment`.
        object: the one object's name; empty for all of the kind.
        operations: of RFC 6902, in order; empty where it merges.
        merge: None where it has operations.
    """

    name: str
    kind: str
    object: str = ""
    operations: tuple[Mapping[str, Any], ...] = ()
    merge: Mapping[str, Any] | None = None


PREVIEW_SUFFIX = "-preview"
"""A service's preview is reached as the service is, under its name with this suffix."""


@dataclass(frozen=True, slots=True)
class Resources:
    """Resource requests of one replica; None leaves a value to the cluster.

    Attributes:
        accelerator: the extended resource of which it gets one, such as `nvidia.com/mig-1g.10gb`: a slice of a GPU, or
            a whole one; empty for none.
        products: values of the node's label `nvidia.com/gpu.product`, of which one has to match; empty matches any.
    """

    cpu_cores: float | None = None
    memory_bytes: int | None = None
    accelerator: str = ""
    products: tuple[str, ...] = ()


class Arrangement(StrEnum):
    """Placement of replicas among equivalent nodes.

    PACK: onto the node with the least free capacity, so that others stay free for a repartition or removal.
    SPREAD: onto the node with the fewest replicas of the same model, so that a node's loss costs least.
    """

    PACK = "pack"
    SPREAD = "spread"


class MatchKind(StrEnum):
    """How a header's value is compared: with a whole value, with a prefix, with several whole values."""

    EXACT = "exact"
    PREFIX = "prefix"
    ANY_OF = "anyOf"


@dataclass(frozen=True, slots=True)
class HeaderMatch:
    """Match of one header of a request, or one entry of a gRPC call's metadata.

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
    """Session affinity: requests with the same value of a header or a cookie are answered by the same revision.

    Attributes:
        revision: the one whose share rises; a session that it answers stays with it while it does.
        header: its name in lower case; empty where it is a cookie.
        cookie: its name; the gateway sets one for clients without it.
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
    """What a payload logger reports, in KServe's terms."""

    ALL = "all"
    REQUEST = "request"
    RESPONSE = "response"


@dataclass(frozen=True, slots=True)
class Logger:
    """Destination of a CloudEvent per request and answer of a revision, as KServe's payload logger sends them."""

    url: str
    mode: Logged = Logged.ALL


@dataclass(frozen=True, slots=True)
class Autoscaling:
    """How far above `replicas` a cluster's own autoscaler, where it has one, may follow the load.

    Attributes:
        most: the highest number of replicas.
        targets: target per replica of `concurrency`, `rps`, `avg_time_queue_ms`, or of `pods/<metric>`, a metric of
            pods that the cluster's metrics have; of `cpu` in percent of its request.
        behavior: how fast.
    """

    most: int
    targets: Mapping[str, float]
    behavior: Behavior = field(default_factory=Behavior)


class CompanionKind(StrEnum):
    """A container of a revision beside its predictor, which it calls itself (KServe: component).

    transformer takes the revision's requests in place of the predictor; explainer takes its explain requests.
    """

    TRANSFORMER = "transformer"
    EXPLAINER = "explainer"


@dataclass(frozen=True, slots=True)
class DesiredCompanion:
    """A companion of a revision's predictor, as the cluster should run it now.

    Attributes:
        image: of a program its record, `NAME@sha256:…`.
        replicas: how many should run; a program runs in each replica of its predictor.
        command, args: in place of the image's own; empty leaves those.
        http_port, grpc_port: where it takes V2 requests and health checks.
        autoscaling: its targets are `cpu` and `memory`, in percent of its requests; None for a fixed number.
        working_dir: the folder of a program, which the local cluster runs; empty for an image.
    """

    image: str
    replicas: int
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    secret_env: Mapping[str, SecretKeyRef] = field(default_factory=dict)
    resources: Resources = Resources()
    http_port: int = 8080
    grpc_port: int = 8081
    autoscaling: Autoscaling | None = None
    working_dir: str = ""


@dataclass(frozen=True, slots=True)
class DesiredPredictor:
    """A container that answers a revision's requests in place of a model: a custom predictor.

    Its variables and resources are the revision's.

    Attributes:
        image: with its digest; of a program its record, `NAME@sha256:…`.
        protocol: `v1` or `v2`.
        command, args: in place of the image's own; empty leaves those.
        port: where it takes HTTP requests.
        ready_path: what answers 2xx once it is ready; empty where its protocol says that.
        working_dir: as of `DesiredCompanion`.
    """

    image: str
    protocol: str = "v2"
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    port: int = 8080
    ready_path: str = ""
    working_dir: str = ""


PodTemplates = Mapping[str, Mapping[str, Any]]
"""Pod templates by the names of Deployments, with the patches of their revision."""


@dataclass(frozen=True, slots=True)
class DesiredRevision:
    """One immutable revision as the cluster should run it now.

    Attributes:
        name: DNS label, unique within the namespace, such as `digits-00002`.
        model_name: the name in V2 clients' requests: the service's name.
        model_version: the registry's version number in decimal; V2's `model_version`.
        artifact_uri: folder with the model files (`file:///…` on the local driver).
        artifact_digest: required digest of the files.
        artifact_origin: where the same files were imported from (s3, gs, http, https), for pods that may read there;
            empty where they were pushed.
        artifact_bytes: size of the files; 0 where unknown.
        is_code: a model in Python, or an ensemble that may have such steps; false where the cluster runs no such
            models. Code gets more of `env` (`environment`).
        egress: whether the model's process may open connections (`may_connect`).
        secret_env: variables whose values are in secrets; none of `env` has their names.
        replicas: how many should run; 0 keeps the revision known but stopped.
        weight_percent: share of requests it should get, 0..100; over the ready revisions of a service they sum to 100.
        model_config: fields of a Triton ModelConfig that override the artifact's; empty leaves it unchanged.
        mirror_percent: share of the service's inference requests of which it should get a copy, 0..100; answers to
            copies are dropped.
        match: requests that match all of these go to it, with any share; empty gives it its share only.
        max_concurrent_requests: concurrency limit of a replica, further requests wait; 0 is no limit.
        restart_number: when it rises, every replica is replaced by a new one, one after the other.
        logger: None without a payload logger.
        autoscaling: None where the number of replicas does not follow the load.
        custom: None for a model.
        is_pool: its replicas answer for the models of a pool, which has the service's name, and for none of its own.
        pool_memory_bytes: memory that the loaded models of a pool's replica may take; 0 is no limit.
        pool_copies: of a pool: how many of its replicas answer for each of these models, `<namespace>.<service>`; for
            all others one does. It changes without a restart. A cluster on Kubernetes takes no notice of it.
        pool: `namespace/name` of the pool whose replicas answer for it; empty where it has replicas of its own.
        own_replicas: how many of its own a revision in a pool should have. The pool answers until one of them is ready,
            and again before they end.
        own_since: Unix seconds since when it should have those, or had them last; 0 where it never had any.
        transformer: None where requests go to the predictor itself.
        explainer: None where explain requests go where the others do.
        patches: changes of its rendered objects on the cluster, in order.
        tap: which requests to record; None for none. It changes without a restart.
        arrangement: None leaves it to the cluster.
        pod: fields of its pods, as the service file sets them.
        pod_templates: the pinned pod templates of its Deployments, by name; empty while none are recorded, and on a
            cluster without pods. What they hold is what runs: no change of the desired state.
        slept_at: Unix seconds when it last went to sleep; None where it never did. With 0 replicas it is asleep: the
            gateway holds its requests, and the first of them wakes it. The driver starts one replica by itself then.
        may_sleep: it has no replicas while no request comes (`minReplicas: 0`), and the first request starts one.
        has_served: it had ready replicas once, so that its present pod templates stay, recorded or not.
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
    secret_env: Mapping[str, SecretKeyRef] = field(default_factory=dict)
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
    transformer: DesiredCompanion | None = None
    explainer: DesiredCompanion | None = None
    patches: tuple[Patch, ...] = ()
    arrangement: Arrangement | None = None
    pod_templates: PodTemplates = field(default_factory=dict, compare=False)
    has_served: bool = field(default=False, compare=False)
    artifact_bytes: int = 0
    pod: PodFields = field(default_factory=PodFields)
    custom: DesiredPredictor | None = None
    is_pool: bool = False
    pool_memory_bytes: int = 0
    pool: str = ""
    pool_copies: Mapping[str, int] = field(default_factory=dict)
    slept_at: float | None = None
    may_sleep: bool = False
    own_replicas: int = 0
    own_since: float = 0.0

    @property
    def companions(self) -> Mapping[CompanionKind, DesiredCompanion]:
        """Return its companions by kind."""
        found = {CompanionKind.TRANSFORMER: self.transformer, CompanionKind.EXPLAINER: self.explainer}
        return {kind: its for kind, its in found.items() if its is not None}

    @property
    def programs(self) -> Mapping[str, tuple[str, str]]:
        """Return folder and record of each program by its part: `predictor`, `transformer`, `explainer`."""
        found: dict[str, DesiredPredictor | DesiredCompanion] = {
            str(kind): its for kind, its in self.companions.items()
        }
        if self.custom is not None:
            found["predictor"] = self.custom
        return {part: (its.working_dir, its.image) for part, its in found.items() if its.working_dir}

    @property
    def secret_refs(self) -> tuple[SecretKeyRef, ...]:
        """Return the secrets of its variables, and of those of its companions."""
        of_companions = (ref for its in self.companions.values() for ref in its.secret_env.values())
        return (*self.secret_env.values(), *of_companions)


@dataclass(frozen=True, slots=True)
class Desired:
    """Desired state of one service on a cluster; `generation` only rises and lower ones are ignored.

    Attributes:
        preview: the revision that answers at the service's preview address; empty without such an address.
        affinity: None assigns every request at random.
        drift: how changes made by hand are resolved, where a cluster has such.
        request_timeout_s: timeout of an HTTP request, from its beginning; 0 is never. gRPC clients set their own.
        rolling: how a revision's replicas are replaced; None leaves it to the driver.
        access: who may call it, on every route; None for everybody.
        cors: which pages of other origins may call it from a browser; None for none.
        limits: of its requests, on every route.
        shared_with: of a pool: namespaces beside its own whose services its replicas answer for, or `*` for all. The
            local cluster takes no notice of it.
        takes_feedback: whether the gateway takes labels for its answers, where the cluster has such an intake.
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
    access: Access | None = None
    cors: Cors | None = None
    limits: Limits = field(default_factory=Limits)
    shared_with: tuple[str, ...] = ()
    takes_feedback: bool = False


def may_connect(egress: bool | None, *, is_code: bool) -> bool:
    """Return whether a model's process may open connections to the network.

    Args:
        egress: of the revision; None where it predates the field, when code could connect.
        is_code: the model is code, and its cluster runs such models.
    """
    return is_code if egress is None else egress
