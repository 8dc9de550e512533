"""Cluster file parser. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

from clusters.domain.cluster_file.artifacts import parse_artifacts
from clusters.domain.cluster_file.connection import STORED, Connection, parse_connection
from clusters.domain.cluster_file.gateways import (
    gateway_url,
    namespaces_of,
    parse_gateway,
    parse_gateways,
    parse_waker,
)
from clusters.domain.cluster_file.network import parse_network
from clusters.domain.cluster_file.prometheus import PrometheusServer, parse_prometheus
from clusters.domain.patches import parse_patches
from clusters.domain.pods import AllowedPods, parse_pods
from clusters.domain.resources import parse_resources
from common.errors import InvalidInput
from common.files.document import Document, parse_document
from common.files.quantities import parse_memory
from common.identifiers import check_dns_label, is_web_address
from integrations.clusters.base import Patch, Resources, is_accelerator
from integrations.clusters.kubernetes.manifests.example import refuse_unfit
from integrations.clusters.kubernetes.manifests.patched import check_target
from integrations.clusters.kubernetes.options import (
    POLLING_S,
    Addresses,
    GatewayReference,
    GpuAllocation,
    Keda,
    LogFormat,
    Options,
    Reach,
    Repartition,
    Telemetry,
)
from serving_runtime.shared.otlp import traces_url

KIND = "kubernetes"
_KNOWN = Options(GatewayReference("", ""), "")  # for the defaults of optional fields


@dataclass(frozen=True, slots=True)
class ClusterFile:
    """A parsed cluster file.

    Attributes:
        patches: of all manifests rendered for services there.
        custom_resources: objects of Fairlead's kinds there are services, policies and rollouts.
        kserve_objects: KServe's InferenceServices there are services, too.
        allows_service_patches: services may have patches of their own, which can change pods in any way.
        pods: the pod fields that services may set.
        gpus_autoscaled: the cluster autoscaler adds GPU nodes for pending pods, so that what does not fit is accepted.
        gateway_url: where V2 clients reach the cluster's Gateway, without a trailing slash; shown on pages.
        prometheus: answers queries about its services; None for that of the settings.
    """

    name: str
    connection: Connection
    gateway_url: str
    options: Options
    patches: tuple[Patch, ...] = ()
    allows_service_patches: bool = False
    custom_resources: bool = False
    kserve_objects: bool = False
    gpus_autoscaled: bool = False
    prometheus: PrometheusServer | None = None
    pods: AllowedPods = field(default_factory=AllowedPods)


def without_secrets(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cluster file with `stored` in place of its kubeconfig and its token; of any form."""
    shown = dict(document)
    connection, prometheus = shown.get("connection"), shown.get("prometheus")
    if isinstance(connection, Mapping) and connection.get("kubeconfig") is not None:
        shown["connection"] = {"kubeconfig": STORED}
    if isinstance(prometheus, Mapping) and prometheus.get("token"):
        shown["prometheus"] = {**prometheus, "token": STORED}
    return shown


def parse_cluster(value: object, *, name: str | None = None) -> ClusterFile:
    """Return the parsed cluster file.

    Args:
        name: the name the file must have, where the request's address gives it; the file may then leave it out.

    Raises:
        InvalidInput: with one sentence and the dotted name of the field at fault; of several faults it names the first,
            and `details` has a sentence for each.
    """
    return parse_document(value, "the cluster file", lambda document: _cluster(document, name))


def _cluster(document: Document, name: str | None) -> ClusterFile:
    found = document.text("name", default=name)
    if name is not None and found != name:
        document.fault("name", f"is {found[:80]!r}, but the cluster is put as {name!r}; give both the same name")
    document.attempt("", check_dns_label, found)
    kind = document.text("kind")
    if kind != KIND:
        this_machine = "the cluster of this machine is called local and has no file"
        document.fault("kind", f"is {kind[:60]!r}; expected {KIND} ({this_machine})")
    gateway = document.document("gateway")
    connection, url = parse_connection(document.document("connection")), gateway_url(gateway)
    options = _options(found, document, gateway)  # which refuses other fields of the gateway
    result = ClusterFile(
        name=found,
        connection=connection,
        gateway_url=url,
        options=options,
        patches=document.attempt((), _patches, document),
        allows_service_patches=document.flag("servicePatches", default=False),
        custom_resources=document.flag("customResources", default=False),
        kserve_objects=document.flag("kserveObjects", default=False),
        gpus_autoscaled=document.flag("gpuNodesAutoscaled", default=False),
        prometheus=document.part("prometheus", parse_prometheus),
        pods=_pods(document, options),
    )
    document.refuse_unknown()
    if result.kserve_objects and not result.custom_resources:
        document.fault("kserveObjects", "is true without customResources: true, which follows objects; say both")
    if result.patches and document.is_sound():
        refuse_unfit(result.patches, result.options)
    return result


def _pods(document: Document, options: Options) -> AllowedPods:
    url = options.control_plane_url
    pods = document.part("pods", lambda part: parse_pods(part, control_plane_url=url)) or AllowedPods()
    return replace(pods, queue_names=options.queue_names)


def _patches(document: Document) -> tuple[Patch, ...]:
    patches = parse_patches(document)
    for patch in patches:
        check_target(patch)
    return patches


def _options(name: str, document: Document, gateway: Document) -> Options:
    control_plane_url = _control_plane(document)
    artifacts = parse_artifacts(document.document("artifacts"), control_plane_url=control_plane_url)
    reach = document.choice("reach", Reach, _KNOWN.reach)
    custom_metrics, keda = _autoscalers(document)
    rate_limits = gateway.flag("rateLimits", default=_KNOWN.rate_limits)
    domain = document.text("domain", default=_KNOWN.domain)
    leaving = namespaces_of(gateway, "leaving")
    reference = parse_gateway(gateway)
    return Options(
        gateway=reference,
        gateways=parse_gateways(document, reference),
        leaving=leaving,
        rate_limits=rate_limits,
        waker=document.part("waker", parse_waker),
        runtime_image=document.text("runtimeImage"),
        gpu_runtime_image=document.text("gpuRuntimeImage", default=_KNOWN.gpu_runtime_image),
        gpu_allocation=document.choice("gpuAllocation", GpuAllocation, _KNOWN.gpu_allocation),
        queue_names=_queue_names(document),
        **{each.name: getattr(artifacts, each.name) for each in fields(artifacts)},
        allow_python_models=document.flag("allowPythonModels", default=_KNOWN.allow_python_models),
        domain=domain,
        addresses=_addresses(document, domain),
        monitoring_namespaces=_namespaces(document, "monitoringNamespaces"),
        reach=reach,
        api_server_networks=_networks(document, reach),
        defaults=_defaults(document.optional("defaults")),
        shared_memory_bytes=_memory(document, "sharedMemory", _KNOWN.shared_memory_bytes),
        custom_metrics=custom_metrics,
        keda=keda,
        repartition=document.part("repartition", _repartition),
        telemetry=_telemetry(document.optional("telemetry")),
        name=name,
        control_plane_url=control_plane_url,
        control_plane_ca_config_map=document.text("controlPlaneCaConfigMap", default=""),
        drain_s=_seconds(document, "drain", _KNOWN.drain_s),
        pre_stop_s=_seconds(document, "preStop", _KNOWN.pre_stop_s),
        longest_start_s=_seconds(document, "longestStart", _KNOWN.longest_start_s),
        **_jobs(document.optional("jobs")),
        allowed_managers=_texts(document, "allowedManagers"),
        network=document.part("network", lambda part: parse_network(part, control_plane_url=control_plane_url)),
    )


def _queue_names(document: Document) -> tuple[str, ...]:
    """Return Kueue's queues; pods have them in a label, whose value is shorter than a name may be."""
    found = _texts(document, "queueNames")
    return tuple(document.attempt(each, check_dns_label, each, field=document.path("queueNames")) for each in found)


def _addresses(document: Document, domain: str) -> Addresses:
    """Return the addresses of services; hosts need a domain."""
    found = document.choice("addresses", Addresses, _KNOWN.addresses)
    if "addresses" in document.names and found is not Addresses.PATHS and not domain:
        document.fault(
            "addresses", f"is {found}, but the file has no domain; give the domain of the hosts, or say paths"
        )
    return found


def _autoscalers(document: Document) -> tuple[bool, Keda | None]:
    """Return the autoscaler there: HorizontalPodAutoscalers by the custom metrics API, or KEDA."""
    custom_metrics = document.flag("customMetrics", default=_KNOWN.custom_metrics)
    keda = document.optional("keda")
    if keda is None:
        return custom_metrics, None
    if custom_metrics:
        document.fault(
            "keda", "and customMetrics: true are both said; one alone may follow the load, so leave one of them out"
        )
    address = keda.text("prometheus").rstrip("/")
    if not is_web_address(address):
        where = "expected where KEDA asks Prometheus, such as http://prometheus.monitoring:9090"
        keda.fault("prometheus", f"is {address[:100]!r}; {where}")
    polling_s = _seconds(keda, "pollingInterval", POLLING_S)
    keda.refuse_unknown()
    return False, Keda(address, polling_s)


def _repartition(document: Document) -> Repartition:
    """Return how nodes may be repartitioned."""
    known = Repartition()
    result = Repartition(
        document.text("namespace", default=known.namespace, check=check_dns_label),
        _seconds(document, "configDelay", known.delay_s),
    )
    document.refuse_unknown()
    return result


def _telemetry(document: Document | None) -> Telemetry:
    """Return where replicas send spans, and the format of their log lines."""
    if document is None:
        return Telemetry()
    endpoint = document.text("otlp", default="")
    if endpoint:
        try:
            traces_url(endpoint)
        except ValueError as error:
            document.fault("otlp", str(error))
    logs = document.choice("logs", LogFormat, Telemetry().logs)
    document.refuse_unknown()
    return Telemetry(endpoint, logs)


def _jobs(document: Document | None) -> dict[str, Any]:
    """Return where models run in trials before a service runs them; unset fields are left out."""
    if document is None:
        return {}
    selector, tolerations = document.raw("nodeSelector", {}), document.raw("tolerations", [])
    if not isinstance(selector, dict) or not all(isinstance(each, str) for pair in selector.items() for each in pair):
        document.fault("nodeSelector", "is no object of texts; write it as a pod's specification has it")
    if not isinstance(tolerations, list) or not all(isinstance(each, dict) for each in tolerations):
        document.fault("tolerations", "is no list of objects; write it as a pod's specification has it")
        tolerations = []
    namespace = document.text("namespace", default=_KNOWN.jobs_namespace, check=check_dns_label)
    measured_on = _measured_on(document)
    document.refuse_unknown()
    return {
        "jobs_namespace": namespace,
        "job_node_selector": selector,
        "job_tolerations": tuple(tolerations),
        "jobs_on": measured_on,
    }


def _measured_on(document: Document) -> tuple[str, ...]:
    """Return the GPUs and slices on which models are measured beside the CPU."""
    named = _texts(document, "measureOn")
    for name in named:
        if not is_accelerator(name) or name.endswith(".shared"):
            expected = "expected nvidia.com/gpu or a MIG slice such as nvidia.com/mig-1g.10gb, shared with no other pod"
            document.fault("measureOn", f"has {name[:60]!r}; {expected}")
    return tuple(dict.fromkeys(named))


def _control_plane(document: Document) -> str:
    url = document.text("controlPlaneUrl", default="").rstrip("/")
    if url and not is_web_address(url):
        where = "expected where pods reach the control plane, such as https://fairlead.example.com"
        document.fault("controlPlaneUrl", f"is {url[:100]!r}; {where}")
    return url


def _defaults(document: Document | None) -> Resources:
    """Return the default resources of a replica whose revision sets none."""
    if document is None:
        return _KNOWN.defaults
    asked = parse_resources(document, gpu_refused="a service asks for a GPU by itself")
    document.refuse_unknown()
    return Resources(
        cpu_cores=asked.cpu_cores or _KNOWN.defaults.cpu_cores,
        memory_bytes=asked.memory_bytes or _KNOWN.defaults.memory_bytes,
    )


def _networks(document: Document, reach: Reach) -> tuple[str, ...]:
    """Return the address ranges from which the API server connects to pods."""
    name = "apiServerNetworks"
    found = _texts(document, name)
    if found and document.is_sound("reach") and reach is not Reach.API_SERVER:
        document.fault(name, f"counts only where reach is {Reach.API_SERVER}; leave it out")
    for each in found:
        try:
            ip_network(each)
        except ValueError as error:
            document.report(InvalidInput(f"{name}: {error}; expected a range such as 10.0.0.0/24", field=name))
    return found


def _namespaces(document: Document, name: str) -> tuple[str, ...]:
    found = _texts(document, name)
    return tuple(document.attempt(each, check_dns_label, each, field=document.path(name)) for each in found)


def _texts(document: Document, name: str) -> tuple[str, ...]:
    value = document.raw(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
        document.fault(name, "is no list of texts")
        return ()
    return tuple(value)


def _memory(document: Document, name: str, default: int) -> int:
    value = document.raw(name, None)
    return default if value is None else document.attempt(default, parse_memory, value, document.path(name))


def _seconds(document: Document, name: str, default_s: int) -> int:
    value = document.duration(name, default=timedelta(seconds=default_s))
    if value % timedelta(seconds=1):
        document.fault(name, "is no number of whole seconds; write it like 30s")
    return int(value.total_seconds())
