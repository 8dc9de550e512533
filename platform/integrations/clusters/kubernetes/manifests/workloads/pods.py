"""Pod template of a replica: the runtime, the step that lays out its model, and the container for its records. Pure."""

import json
import re
from dataclasses import replace
from urllib.parse import urlsplit

from integrations.clusters.base import Arrangement, Desired, DesiredRevision, Spread, permitted
from integrations.clusters.flags import (
    CLOSED,
    NO_CODE_FILES,
    log_variables,
    logger_flags,
    python_flags,
    trace_variables,
)
from integrations.clusters.kubernetes.manifests.jobs import control_plane
from integrations.clusters.kubernetes.manifests.names import (
    EGRESS,
    GRPC_PORT,
    HTTP_PORT,
    MANAGED,
    METRICS_PORT,
    MODEL_VERSION,
    RESTART,
    REVISION,
    Manifest,
    quantity,
    revision_labels,
    selector,
)
from integrations.clusters.kubernetes.manifests.workloads import accelerators, claims, queues, taps, volumes
from integrations.clusters.kubernetes.manifests.workloads.model_sources import Source, source_of
from integrations.clusters.kubernetes.manifests.workloads.secure import (
    SECURE,
    env_entries,
    probes,
    requested,
    secure_pod,
    without_identity,
)
from integrations.clusters.kubernetes.options import GpuAllocation, LogFormat, Options
from serving_runtime.shared.egress import PRIVATE

RUNTIME, PREPARE = "runtime", "prepare"
MODELS = "/mnt/models"
_TERMINATION_MESSAGE = "/dev/termination-log"  # Kubernetes: terminationMessagePath
_SERVICE_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")  # RFC 1035, as Kubernetes has them
PORTS = [
    {"name": "http", "containerPort": HTTP_PORT, "protocol": "TCP"},
    {"name": "grpc", "containerPort": GRPC_PORT, "protocol": "TCP"},
    {"name": "metrics", "containerPort": METRICS_PORT, "protocol": "TCP"},
]
COMMAND = ["python", "-I", "-m", "serving_runtime"]


def pod_template(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest:
    """Return the pod template of a revision's Deployment; raises InvalidInput for an artifact no pod can reach."""
    source = source_of(revision, options)
    claims.refuse_shared(revision.resources, options)
    return {
        "metadata": metadata(
            desired, revision, options, RUNTIME, *([taps.REPORTS] if taps.is_possible(options) else [])
        ),
        "spec": {
            **secure_pod(desired, options),
            **scheduling(desired, revision, options),
            "initContainers": [
                _prepare(revision, source, options),
                *taps.reports(accelerators.image(revision, options), options),
            ],
            "containers": [runtime_container(desired, revision, options)],
            "volumes": [
                volumes.empty("models", volumes.models_gib(options, revision.artifact_bytes)),
                *source.volumes,
                volumes.empty("prepare-tmp", volumes.TMP_GIB),
                volumes.empty("tmp", volumes.TMP_GIB),
                {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": str(options.shared_memory_bytes)}},
                *taps.volumes(desired, revision, options),
                *([control_plane.volume(options)] if source.calls else []),
            ],
        },
    }


def metadata(desired: Desired, revision: DesiredRevision, options: Options, *containers: str) -> Manifest:
    """Return labels and annotations of a revision's pods; `containers` are denied a cloud identity."""
    return {
        "labels": {
            **revision.pod.labels,
            **queues.queue_of(revision, options),
            **revision_labels(desired.service, revision.name),
            **({EGRESS: "true"} if revision.egress else {}),
        },
        "annotations": {
            MODEL_VERSION: revision.model_version,
            RESTART: str(revision.restart_number),
            "prometheus.io/scrape": "true",
            "prometheus.io/port": str(METRICS_PORT),
            **without_identity(options, *containers),
        },
    }


def _prepare(revision: DesiredRevision, source: Source, options: Options) -> Manifest:
    env = {} if options.allow_python_models else NO_CODE_FILES
    environment: Manifest = {"env": [{"name": name, "value": value} for name, value in env.items()]} if env else {}
    environment |= {"envFrom": list(source.env_from)} if source.env_from else {}
    return {
        "name": PREPARE,
        "image": accelerators.image(revision, options),
        "command": [*COMMAND, "prepare"],
        "args": [
            *source.arguments,
            f"--digest={revision.artifact_digest}",
            f"--name={revision.model_name}",
            f"--version={revision.model_version}",
            f"--config={json.dumps(revision.model_config, sort_keys=True)}",
            f"--model-repository={MODELS}",
            f"--termination-message={_TERMINATION_MESSAGE}",
        ],
        **environment,
        "resources": volumes.with_disk(
            requested(replace(revision.resources, accelerator=""), options), 2 * revision.artifact_bytes
        ),
        "securityContext": SECURE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            *source.mounts,
            {"name": "models", "mountPath": MODELS},
            # Its own: a container that ran before in a pod whose node restarted leaves nothing in it.
            {"name": "prepare-tmp", "mountPath": "/tmp"},  # noqa: S108 - a mount in a pod
        ],
    }


def runtime_container(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest:
    """Return the container that answers requests; its first argument and its first mount are its models."""
    arguments = [
        f"--model-repository={MODELS}",
        f"--exit-timeout-secs={options.drain_s}",
        f"--revision={revision.name}",
    ]
    if revision.max_concurrent_requests:
        arguments.append(f"--max-concurrent-requests={revision.max_concurrent_requests}")
    arguments += accelerators.flags(revision.resources) + python_flags(allowed=options.allow_python_models)
    arguments += _logger_flags(desired, revision, options) + taps.flags(options)
    is_code = revision.is_code and options.allow_python_models
    env = {
        **permitted(revision.env, is_code=is_code),
        **CLOSED,
        **log_variables(is_json=options.telemetry.logs is LogFormat.JSON),
        **trace_variables(options.telemetry.otlp, desired.namespace, revision),
    }
    return {
        "name": RUNTIME,
        "image": accelerators.image(revision, options),
        "command": COMMAND,
        "args": arguments,
        "env": env_entries(env, permitted(revision.secret_env, is_code=is_code)),
        "ports": [*PORTS],
        "resources": volumes.with_disk(
            limited(requested(revision.resources, options), revision, options), revision.artifact_bytes
        ),
        "securityContext": SECURE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **probes(options),
        "lifecycle": {"preStop": {"sleep": {"seconds": options.pre_stop_s}}},
        "volumeMounts": [
            {"name": "models", "mountPath": MODELS, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a mount in a pod
            {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - a mount in a pod
            *taps.mounts(options),
        ],
    }


def _logger_flags(desired: Desired, revision: DesiredRevision, options: Options) -> list[str]:
    """Return the flags of the revision's logger. One that is a Service of the pods' own namespace may be private.

    Its name is written so that no search domain of the node makes another host of it.
    """
    if revision.logger is None:
        return []
    host = service_beside(desired.namespace, revision.logger.url)
    if not host:
        return logger_flags(desired.namespace, revision, options.egress_allowed)
    parts = urlsplit(revision.logger.url)
    port = "" if parts.port is None else f":{parts.port}"
    logger = replace(revision.logger, url=parts._replace(netloc=f"{host}{port}").geturl())
    return logger_flags(desired.namespace, replace(revision, logger=logger), (*PRIVATE, *options.egress_allowed))


def service_beside(namespace: str, url: str) -> str:
    """Return the qualified name of the URL's host where it is a Service of the namespace; empty for other hosts."""
    name, _, domain = (urlsplit(url).hostname or "").partition(".")
    qualified = f"{namespace}.svc"
    if not _SERVICE_NAME.fullmatch(name) or domain not in ("", namespace, qualified, f"{qualified}.cluster.local"):
        return ""
    return f"{name}.{qualified}" if len(domain) < len(qualified) else f"{name}.{domain}"


_NODE, _ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
_ANY_SKEW = 2**31 - 1


def scheduling(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest:
    """Return the fields of a pod's spec that say where it runs, with those that the service file sets."""
    return _with_pod_fields(_scheduling(desired, revision, options), desired, revision)


def _scheduling(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest:
    """Return the fields of a pod's spec by which the scheduler chooses its node.

    Sources: Kubernetes, "Pod Topology Spread Constraints", "Assigning Pods to Nodes". Both are preferences: a replica
    without a better node is scheduled all the same.
    """
    if options.gpu_allocation is GpuAllocation.CLAIMS:
        fields = claims.where(revision.resources, revision.name)
    else:
        fields = accelerators.where(revision.resources)
    match revision.arrangement:
        case Arrangement.SPREAD:
            affinity = {**fields.get("affinity", {}), "podAntiAffinity": _in_other_zones(desired, revision)}
            return {**fields, "affinity": affinity, "topologySpreadConstraints": [_apart(desired, revision)]}
        case Arrangement.PACK:
            affinity = {**fields.get("affinity", {}), "podAffinity": _beside_others()}
            return {**fields, "affinity": affinity, "topologySpreadConstraints": [_wherever(desired, revision)]}
    return fields


def _with_pod_fields(fields: Manifest, desired: Desired, revision: DesiredRevision) -> Manifest:
    """Return the fields of a pod's spec with those that the service file sets; unset ones add nothing."""
    pod, result = revision.pod, dict(fields)
    if pod.service_account:
        result["serviceAccountName"] = pod.service_account
    if pod.node_selector:
        result["nodeSelector"] = dict(pod.node_selector)
    if pod.tolerations:
        result["tolerations"] = [*fields.get("tolerations", []), *map(dict, pod.tolerations)]
    if pod.priority_class:
        result["priorityClassName"] = pod.priority_class
    if pod.image_pull_secrets:
        result["imagePullSecrets"] = [{"name": name} for name in pod.image_pull_secrets]
    if pod.spread:
        result["topologySpreadConstraints"] = [_spread(desired, revision, each) for each in pod.spread]
    return result


def _spread(desired: Desired, revision: DesiredRevision, spread: Spread) -> Manifest:
    return {
        **_apart(desired, revision),
        "maxSkew": spread.max_skew,
        "topologyKey": spread.topology_key,
        "whenUnsatisfiable": "DoNotSchedule" if spread.required else "ScheduleAnyway",
    }


def limited(resources: Manifest, revision: DesiredRevision, options: Options) -> Manifest:
    """Return a container's resources with the revision's CPU limit; a larger default request is lowered to it."""
    limit = revision.pod.cpu_limit
    if limit is None:
        return resources
    default = revision.resources.cpu_cores or options.defaults.cpu_cores or 0
    requests = {**resources["requests"], "cpu": quantity(limit)} if default > limit else resources["requests"]
    return {**resources, "requests": requests, "limits": {**resources["limits"], "cpu": quantity(limit)}}


def _apart(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Spread replicas over nodes; those that a restart replaces do not count."""
    return {
        "maxSkew": 1,
        "topologyKey": _NODE,
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(desired.service, revision.name)},
        "matchLabelKeys": ["pod-template-hash"],
    }


def _in_other_zones(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Spread replicas over zones, where there are zones: by a constraint, nodes without a zone would not count."""
    term = {"labelSelector": {"matchLabels": selector(desired.service, revision.name)}, "topologyKey": _ZONE}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _beside_others() -> Manifest:
    """Prefer the node with the most replicas of services, of any service and namespace."""
    term = {
        "labelSelector": {"matchLabels": MANAGED, "matchExpressions": [{"key": REVISION, "operator": "Exists"}]},
        "namespaceSelector": {},
        "topologyKey": _NODE,
    }
    return {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 100, "podAffinityTerm": term}]}


def _wherever(desired: Desired, revision: DesiredRevision) -> Manifest:
    """Allow any skew: of pods without a constraint the scheduler spreads those of one Deployment by itself."""
    return {
        "maxSkew": _ANY_SKEW,
        "topologyKey": _NODE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": selector(desired.service, revision.name)},
    }
