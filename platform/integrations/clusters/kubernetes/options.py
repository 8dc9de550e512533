"""What an operator says of a Kubernetes cluster. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from common.errors import InvalidInput
from integrations.clusters.base import Resources
from serving_runtime.shared.egress import Network

_MIB = 1 << 20
POLLING_S = 15
"""How often KEDA asks for the load where the operator does not say."""


class Reach(StrEnum):
    """How the control plane comes to the pods' metrics pages: at their addresses, or through the API server."""

    DIRECT = "direct"
    API_SERVER = "apiServer"


@dataclass(frozen=True, slots=True)
class GatewayReference:
    """The Gateway that the operator made; routes attach to it.

    Attributes:
        http_listener: the listener's name (`sectionName`) for HTTP routes; empty attaches to all that allow it.
        grpc_listener: the same for gRPC routes. The Gateway API lets HTTP and gRPC routes share no host of a listener,
            so a Gateway that is strict about this needs one of its own for each.
    """

    name: str
    namespace: str
    http_listener: str = ""
    grpc_listener: str = ""


class ModelSource(StrEnum):
    """Where pods take models from; see `manifests/sources.py`."""

    CLAIM = "claim"
    REGISTRY = "registry"
    ORIGIN = "origin"


@dataclass(frozen=True, slots=True)
class ModelCache:
    """Where pods keep what they fetched, for other pods: one of the two.

    Attributes:
        claim: PersistentVolumeClaim of each service's namespace that pods may write to.
        node_folder: folder of each node that user 65532 may write to. It breaks the Pod Security Standard
            "restricted", which forbids hostPath.
        max_bytes: what is kept at most; what was not wanted for longest goes first.
    """

    claim: str = ""
    node_folder: str = ""
    max_bytes: int = 100 << 30

    def __post_init__(self) -> None:
        if bool(self.claim) == bool(self.node_folder):
            raise InvalidInput("model_cache takes a claim or a node_folder, one of the two", field="model_cache")


@dataclass(frozen=True, slots=True)
class Keda:
    """KEDA follows the load in the place of autoscalers of the driver's own.

    Attributes:
        prometheus: where KEDA asks for the load, an address such as `http://prometheus.monitoring:9090`, whose series
            of pods have the labels `namespace`, `pod` and `revision`.
        polling_s: how often.
    """

    prometheus: str
    polling_s: int = POLLING_S


@dataclass(frozen=True, slots=True)
class Repartition:
    """Nodes may be cut anew once somebody approved it; takes the roles `fairlead-driver-repartition*`.

    Attributes:
        namespace: where NVIDIA's GPU Operator runs, with the ConfigMap `fairlead-mig-parted-config` that its MIG
            manager reads.
        delay_s: how long it may take until what is written there has come to a node.
    """

    namespace: str = "gpu-operator"
    delay_s: int = 120


@dataclass(frozen=True, slots=True)
class Options:
    """How services are run on a cluster.

    Attributes:
        runtime_image: image with a `python` that has `serving_runtime`; pinned by digest in earnest use.
        gpu_runtime_image: the same for replicas that get a GPU or a slice of one; empty where none may.
        models_from: where pods take models from.
        artifacts_claim: for `claim`, PersistentVolumeClaim of each service's namespace that holds the model files;
            mounted read-only.
        artifacts_root: folder that is the claim's root where the control plane writes model files, such as
            `/var/lib/fairlead/artifacts`.
        model_cache: what pods fetched, for other pods; None fetches for each pod. Not with `claim`.
        origin_secret: for `origin`, Secret of each service's namespace whose keys become environment variables of the
            step that fetches, such as AWS_ACCESS_KEY_ID; empty where pods have an identity of their own.
        service_account_annotations: of each service's ServiceAccount, by which clouds give pods such an identity.
        allow_python_models: whether runtimes may run models whose files are code; jobs look at them by running them.
        domain: services answer at `<service>.<namespace>.<domain>` too; empty leaves them at their paths.
        monitoring_namespaces: namespaces from which metrics may be read; that of the control plane is one of them where
            it reads directly.
        reach: API_SERVER is for a control plane outside of the cluster, and takes the role `fairlead-driver-metrics`.
        api_server_networks: address ranges (CIDR) that the API server asks pods from; empty lets everybody read metrics
            where `reach` is API_SERVER.
        defaults: what a replica gets whose revision does not say.
        shared_memory_bytes: size of /dev/shm, which counts as the replica's memory.
        custom_metrics: the cluster's custom metrics API has what revisions scale on (see `manifests/scaling.py`), so
            that a HorizontalPodAutoscaler can follow the load; without it the reconciler alone sets the replicas.
        keda: None where KEDA does not follow the load; not with `custom_metrics`. Takes the role
            `fairlead-driver-keda`.
        repartition: None where nodes are never cut anew.
        name: what the control plane calls the cluster.
        control_plane_url: where pods of the cluster reach the control plane, such as `https://fairlead.example.org`;
            needed for what pods fetch from it or bring to it.
        control_plane_ca_config_map: ConfigMap of each service's namespace whose `ca.crt` has the certificate authority
            of that address; empty for the authorities that the runtime's image knows.
        payloads_folder: where the control plane keeps what taps record, the same folder for its web processes and its
            workers; empty where nothing can be recorded.
        drain_s: longest time that accepted requests are given to finish.
        allowed_managers: field managers that may own fields of what is applied; such fields are left to them. To let
            a HorizontalPodAutoscaler of the operator's own set replicas, name `kube-controller-manager`, as which it
            writes.
        longest_start_s: after so long without becoming ready a replica is started anew; the time a model takes to load.
        jobs_namespace: where models are asked that no service runs yet; has the claim, or the origin's Secret, too.
        job_node_selector, job_tolerations: on which nodes, as a pod's specification has them.
        jobs_on: extended resources, such as a MIG slice, on which models are measured beside the CPU.
        egress_allowed: networks that payload loggers may be in although they are not public; the control plane's
            setting. Loggers that are Services of the pods' own namespace need none (`manifests/pods.py`).
        pre_stop_s: how long a replica goes on serving after it was told to end, until no gateway sends to it any more.
    """

    gateway: GatewayReference
    runtime_image: str
    artifacts_claim: str = ""
    artifacts_root: str = ""
    models_from: ModelSource = ModelSource.CLAIM
    model_cache: ModelCache | None = None
    origin_secret: str = ""
    service_account_annotations: Mapping[str, str] = field(default_factory=dict)
    allow_python_models: bool = False
    gpu_runtime_image: str = ""
    domain: str = ""
    monitoring_namespaces: tuple[str, ...] = ()
    reach: Reach = Reach.DIRECT
    api_server_networks: tuple[str, ...] = ()
    defaults: Resources = field(default_factory=lambda: Resources(cpu_cores=0.5, memory_bytes=1024 * _MIB))
    shared_memory_bytes: int = 64 * _MIB
    custom_metrics: bool = False
    keda: Keda | None = None
    repartition: Repartition | None = None
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
    egress_allowed: tuple[Network, ...] = ()
