"""Operator options of a Kubernetes cluster. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from ipaddress import ip_network
from types import MappingProxyType

from common.errors import InvalidInput
from integrations.clusters.base import Resources
from serving_runtime.shared import json_log
from serving_runtime.shared.egress import Network

_MIB = 1 << 20
POLLING_S = 15
"""KEDA's default polling interval."""


class Reach(StrEnum):
    """How the control plane reaches the pods' metrics pages: at their addresses, or through the API server."""

    DIRECT = "direct"
    API_SERVER = "apiServer"


@dataclass(frozen=True, slots=True)
class GatewayReference:
    """The Gateway that the operator made; routes attach to it.

    Attributes:
        http_listener: the listener's name (`sectionName`) for HTTP routes; empty attaches to all that allow it.
        grpc_listener: the same for gRPC routes. The Gateway API lets HTTP and gRPC routes share no host of a listener,
            so a Gateway that is strict about this needs one of its own for each.
        proxy_namespace: where the Gateway's own pods run; empty for `namespace`.
    """

    name: str
    namespace: str
    http_listener: str = ""
    grpc_listener: str = ""
    proxy_namespace: str = ""


@dataclass(frozen=True, slots=True)
class NamespaceGateway:
    """A further Gateway, for the services of some namespaces.

    Attributes:
        url: where V2 clients reach it, without a trailing slash.
        namespaces: names, or beginnings that end with `*`; the first Gateway that has a namespace serves it.
        leaving: the same, of namespaces that another Gateway serves now, and this one still.
        rate_limits: as `Options` has it.
    """

    reference: GatewayReference
    url: str
    namespaces: tuple[str, ...]
    leaving: tuple[str, ...] = ()
    rate_limits: bool = False


class Addresses(StrEnum):
    """Addresses of services: hosts below the domain, paths of the Gateway's own host, or both."""

    HOSTS = "hosts"
    PATHS = "paths"
    BOTH = "both"


class ModelSource(StrEnum):
    """Source of pods' models; see `manifests/workloads/model_sources.py`."""

    CLAIM = "claim"
    REGISTRY = "registry"
    ORIGIN = "origin"
    BUCKET = "bucket"


@dataclass(frozen=True, slots=True)
class ModelCache:
    """Cache of fetched models for other pods: one of the two.

    Attributes:
        claim: PersistentVolumeClaim of each service's namespace that pods may write to.
        node_folder: folder of each node that user 65532 may write to. It breaks the Pod Security Standard "restricted",
            which forbids hostPath.
        max_bytes: maximum size; least recently used models are evicted first.
    """

    claim: str = ""
    node_folder: str = ""
    max_bytes: int = 100 << 30

    def __post_init__(self) -> None:
        if bool(self.claim) == bool(self.node_folder):
            raise InvalidInput("model_cache takes a claim or a node_folder, one of the two", field="model_cache")


@dataclass(frozen=True, slots=True)
class Keda:
    """KEDA, as autoscaler instead of the driver's own.

    Attributes:
        prometheus: where KEDA queries the load, an address such as `http://prometheus.monitoring:9090`, whose series of
            pods have the labels `namespace`, `pod` and `revision`.
        polling_s: how often.
    """

    prometheus: str
    polling_s: int = POLLING_S


@dataclass(frozen=True, slots=True)
class Repartition:
    """Nodes may be repartitioned after approval; needs the roles `fairlead-driver-repartition*`.

    Attributes:
        namespace: where NVIDIA's GPU Operator runs, with the ConfigMap `fairlead-mig-parted-config` that its MIG
            manager reads.
        delay_s: how long a change of it may take to reach a node.
    """

    namespace: str = "gpu-operator"
    delay_s: int = 120


@dataclass(frozen=True, slots=True)
class Destination:
    """Peer that pods of models may connect to: a network, the internet, or pods of a namespace.

    Attributes:
        network: addresses, except for those that `GUARDED` has; None for the others.
        is_internet: public addresses.
        namespace, pods: pods with these labels of a namespace; all of them without labels.
        ports: of TCP; empty for all ports of all protocols.
    """

    network: Network | None = None
    is_internet: bool = False
    namespace: str = ""
    pods: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, ...] = ()


NODE_LOCAL_DNS = ip_network("169.254.20.10/32")
"""Address of NodeLocal DNSCache on each node: the only link-local one that pods of models may reach, for DNS alone."""


@dataclass(frozen=True, slots=True)
class ClosedNetwork:
    """NetworkPolicies of models' pods and Jobs: all that they do not name is denied; see `manifests/network/`.

    Attributes:
        egress: what replicas and Jobs need besides DNS, such as the control plane and the storage of models.
        granted: what services with granted egress may reach.
        dns: servers of DNS; ports other than 53 count for UDP and TCP.
    """

    egress: tuple[Destination, ...] = ()
    granted: tuple[Destination, ...] = (Destination(is_internet=True),)
    dns: tuple[Destination, ...] = (
        Destination(namespace="kube-system", pods=MappingProxyType({"k8s-app": "kube-dns"})),
    )


class GpuAllocation(StrEnum):
    """How pods get their GPU: by an extended resource of the device plugin, or by a claim of the DRA driver."""

    DEVICE_PLUGIN = "devicePlugin"
    CLAIMS = "claims"


class LogFormat(StrEnum):
    """Format of log lines."""

    TEXT = json_log.TEXT
    JSON = json_log.JSON


@dataclass(frozen=True, slots=True)
class Telemetry:
    """Logs and traces of replicas.

    Attributes:
        otlp: base address of the collector of their spans, such as `http://collector.monitoring:4318`; empty for none.
        logs: format of their log lines.
    """

    otlp: str = ""
    logs: LogFormat = LogFormat.TEXT


@dataclass(frozen=True, slots=True)
class Options:
    """Options of running services on a cluster.

    Attributes:
        runtime_image: image with a `python` that has `serving_runtime`; pinned by digest in production.
        gpu_runtime_image: the same for replicas that get a GPU or a slice of one; empty where none may.
        models_from: where pods take models from.
        artifacts_claim: for `claim`, PersistentVolumeClaim of each service's namespace that holds the model files;
            mounted read-only.
        artifacts_root: folder that is the claim's root where the control plane writes model files, such as
            `/var/lib/fairlead/artifacts`.
        model_cache: shared cache of fetched models; None fetches for each pod. Not with `claim`.
        bucket: for `bucket`, s3:// or gs:// address below which the control plane keeps a copy of each deployed model.
        origin_secret: for `origin` and `bucket`, Secret of each service's namespace whose keys become environment
            variables of the step that fetches, such as AWS_ACCESS_KEY_ID; empty where pods have their own identity.
        service_account_annotations: of each service's ServiceAccount, by which clouds give pods such an identity.
        allow_python_models: whether runtimes may run models whose files are code; jobs inspect them by running them.
        gpu_allocation: of pods that are rendered from now on; CLAIMS takes the roles `fairlead-driver-claims` and
            `fairlead-driver-devices`.
        gateways: further ones; `gateway` serves the namespaces of none of them.
        leaving: namespaces that one of `gateways` serves now, and `gateway` still, as `NamespaceGateway` has them.
        also: Gateways besides `gateway` that still serve the namespace of these options.
        callers: Gateways that reach its pods besides those: of namespaces that a model pool is shared with.
        rate_limits: the Gateway is an Envoy Gateway's that has its rate limit service, so that requests can be limited.
        domain: of hosts `<service>.<namespace>.<domain>`; empty leaves services at their paths.
        addresses: with a domain, whether services answer at hosts, paths or both.
        monitoring_namespaces: namespaces from which metrics may be read; that of the control plane is one of them where
            it reads directly.
        reach: API_SERVER is for a control plane outside of the cluster, and needs the role `fairlead-driver-metrics`.
        api_server_networks: address ranges (CIDR) from which the API server connects to pods; empty lets everyone read
            metrics where `reach` is API_SERVER.
        defaults: resources of a replica whose revision does not set them.
        shared_memory_bytes: size of /dev/shm, which counts as the replica's memory.
        custom_metrics: the cluster's custom metrics API has what revisions scale on (see `manifests/scaling/`), so that
            a HorizontalPodAutoscaler can follow the load; without it the reconciler alone sets the replicas.
        keda: None where KEDA does not follow the load; not with `custom_metrics`. Takes the role
            `fairlead-driver-keda`.
        repartition: None where nodes are never repartitioned.
        telemetry: a change of it reaches a service with its next revision.
        queue_names: Kueue's LocalQueues of pods and Jobs: the first of them where a service names none; empty without
            Kueue.
        name: the cluster's name in the control plane.
        control_plane_url: where pods of the cluster reach the control plane, such as `https://fairlead.example.org`;
            needed for pods that fetch from it or upload to it.
        control_plane_ca_config_map: ConfigMap of each service's namespace whose `ca.crt` has the certificate authority
            of that address; empty for the authorities that the runtime's image knows.
        payloads_folder: where the control plane keeps what taps record, the same folder for its web processes and its
            workers; empty where nothing can be recorded.
        drain_s: longest time that accepted requests are given to finish.
        allowed_managers: field managers that may own fields of what is applied; such fields are left to them. To let
            a HorizontalPodAutoscaler of the operator's own set replicas, name `kube-controller-manager`, as which it
            writes.
        longest_start_s: after so long without becoming ready a replica is restarted; the time a model takes to load.
        jobs_namespace: where jobs open models that no service runs yet; has the claim, or the origin's Secret, too.
        job_node_selector, job_tolerations: on which nodes, as a pod's specification has them.
        jobs_on: extended resources, such as a MIG slice, on which models are measured beside the CPU.
        network: None leaves egress open, and Jobs without a NetworkPolicy; it takes the role
            `fairlead-driver-jobs-network`.
        egress_allowed: networks that payload loggers may be in although they are not public; the control plane's
            setting. Loggers that are Services of the pods' own namespace need none (`manifests/workloads/pods.py`).
        allowed_registries: registries of the images that service files and patches name (`common.images`); empty allows
            all. The runtime's own images are allowed in any case.
        max_model_bytes: maximum size of a model's files; the control plane's setting.
        pre_stop_s: how long a replica goes on serving after its termination began, until no gateway sends to it any
            more.
    """

    gateway: GatewayReference
    runtime_image: str
    artifacts_claim: str = ""
    artifacts_root: str = ""
    models_from: ModelSource = ModelSource.CLAIM
    model_cache: ModelCache | None = None
    origin_secret: str = ""
    bucket: str = ""
    service_account_annotations: Mapping[str, str] = field(default_factory=dict)
    allow_python_models: bool = False
    gpu_runtime_image: str = ""
    gpu_allocation: GpuAllocation = GpuAllocation.DEVICE_PLUGIN
    gateways: tuple[NamespaceGateway, ...] = ()
    leaving: tuple[str, ...] = ()
    also: tuple[GatewayReference, ...] = ()
    callers: tuple[GatewayReference, ...] = ()
    rate_limits: bool = False
    domain: str = ""
    addresses: Addresses = Addresses.BOTH
    monitoring_namespaces: tuple[str, ...] = ()
    reach: Reach = Reach.DIRECT
    api_server_networks: tuple[str, ...] = ()
    defaults: Resources = field(default_factory=lambda: Resources(cpu_cores=0.5, memory_bytes=1024 * _MIB))
    shared_memory_bytes: int = 64 * _MIB
    custom_metrics: bool = False
    keda: Keda | None = None
    repartition: Repartition | None = None
    telemetry: Telemetry = Telemetry()
    queue_names: tuple[str, ...] = ()
    name: str = ""
    control_plane_url: str = ""
    control_plane_ca_config_map: str = ""
    payloads_folder: str = ""
    drain_s: int = 30
    pre_stop_s: int = 5
    allowed_managers: tuple[str, ...] = ()
    longest_start_s: int = 600
    jobs_namespace: str = "fairlead-jobs"
    job_node_selector: Mapping[str, str] = field(default_factory=dict)
    job_tolerations: tuple[Mapping[str, object], ...] = ()
    jobs_on: tuple[str, ...] = ()
    network: ClosedNetwork | None = None
    egress_allowed: tuple[Network, ...] = ()
    allowed_registries: tuple[str, ...] = ()
    max_model_bytes: int = 10 << 30

    @property
    def has_hosts(self) -> bool:
        """Return whether services answer at hosts."""
        return bool(self.domain) and self.addresses is not Addresses.PATHS

    @property
    def has_paths(self) -> bool:
        """Return whether services answer at paths."""
        return not self.has_hosts or self.addresses is Addresses.BOTH

    @property
    def all_gateways(self) -> tuple[GatewayReference, ...]:
        """Return the main Gateway and all further ones."""
        return (self.gateway, *(each.reference for each in self.gateways))

    def of_namespace(self, namespace: str, shared_with: Sequence[str] = ()) -> "Options":
        """Return the options of services of a namespace, with the Gateway that serves it as `gateway`.

        Args:
            shared_with: other namespaces whose Gateways reach its pods.
        """
        found = gateways_of(namespace, [(each.namespaces, each.leaving) for each in self.gateways], self.leaving)
        own, *also = [(self.gateway, self.rate_limits) if at is None else self._further(at) for at in found]
        gateway, rate_limits = own
        references = tuple(reference for reference, _ in also)
        others = [self.of_namespace(each) for each in shared_with]
        callers = tuple(gateway for each in others for gateway in (each.gateway, *each.also))
        return replace(self, gateway=gateway, rate_limits=rate_limits, also=references, callers=callers)

    def _further(self, at: int) -> tuple[GatewayReference, bool]:
        return self.gateways[at].reference, self.gateways[at].rate_limits


def gateways_of(
    namespace: str, further: Sequence[tuple[Sequence[str], Sequence[str]]], leaving: Sequence[str]
) -> tuple[int | None, ...]:
    """Return the Gateways of a namespace, by their place among the further ones; None is the cluster's main one.

    The first one serves it; the others do still, since it is leaving them.

    Args:
        further: `namespaces` and `leaving` of each further Gateway.
        leaving: of the main one.
    """
    own = next((at for at, (namespaces, _) in enumerate(further) if _includes(namespaces, namespace)), None)
    left: list[int | None] = [at for at, (_, its) in enumerate(further) if at != own and _includes(its, namespace)]
    if own is not None and _includes(leaving, namespace):
        left.append(None)
    return (own, *left)


def _includes(patterns: Sequence[str], namespace: str) -> bool:
    return any(
        namespace.startswith(each.removesuffix("*")) if each.endswith("*") else namespace == each for each in patterns
    )
