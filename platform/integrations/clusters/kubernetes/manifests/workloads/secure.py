"""Pod security, resources, variables and probes of every container of a service's pods. Pure.

Secure by default: it satisfies the Pod Security Standard "restricted", writes to no file system except its own volumes,
and holds no token of the cluster.
"""

from collections.abc import Mapping

from integrations.clusters.base import Desired, Resources, SecretKeyRef
from integrations.clusters.kubernetes.manifests.names import Manifest, quantity
from integrations.clusters.kubernetes.options import GpuAllocation, ModelSource, Options

SECURE = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
}
CLAIM = "gpu"
"""Name of a pod's claim of a GPU, where GPUs are claimed."""
_USER = 65532
_WITHOUT_IDENTITY = "eks.amazonaws.com/skip-containers"  # Amazon's webhook gives these containers no credentials
_PROBE_EVERY_S = 2
_MARGIN_S = 5


def secure_pod(desired: Desired, options: Options) -> Manifest:
    """Return the fields of a pod's spec that are the same for all."""
    return {
        "serviceAccountName": desired.service,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "terminationGracePeriodSeconds": options.pre_stop_s + options.drain_s + _MARGIN_S,
    }


def without_identity(options: Options, *containers: str) -> dict[str, str]:
    """Return the annotation that denies containers a cloud identity, where the step that fetches may have one.

    Amazon's is a token in the container. Google's is an address that all containers of a pod reach.
    """
    has_identity = options.models_from in (ModelSource.ORIGIN, ModelSource.BUCKET)
    return {_WITHOUT_IDENTITY: ",".join(containers)} if has_identity else {}


def probes(options: Options) -> Manifest:
    """Return a container's probes, which call V2 health at its port `http`."""
    return {
        "startupProbe": {**_probe("ready"), **startup(options)},
        "readinessProbe": {**_probe("ready"), "periodSeconds": _PROBE_EVERY_S, "failureThreshold": 2},
        "livenessProbe": {**_probe("live"), "periodSeconds": 10, "failureThreshold": 6},
    }


def startup(options: Options) -> Manifest:
    """Return how often a startup probe asks, and how often it may fail."""
    failures = max(1, options.longest_start_s // _PROBE_EVERY_S)
    return {"periodSeconds": _PROBE_EVERY_S, "failureThreshold": failures}


def env_entries(env: Mapping[str, str], secret_env: Mapping[str, SecretKeyRef]) -> list[Manifest]:
    """Return a container's variables by name; those of Secrets win."""
    entries: dict[str, Manifest] = {name: {"name": name, "value": value} for name, value in env.items()}
    for name, each in secret_env.items():
        entries[name] = {"name": name, "valueFrom": {"secretKeyRef": {"name": each.name, "key": each.key}}}
    return [entries[name] for name in sorted(entries)]


def requested(resources: Resources, options: Options) -> Manifest:
    """Return a container's resources; unset ones are the operator's defaults."""
    cpu_cores = resources.cpu_cores or options.defaults.cpu_cores or 0.5
    memory_bytes = resources.memory_bytes or options.defaults.memory_bytes or 0
    requests = {"cpu": quantity(cpu_cores), "memory": str(memory_bytes)}
    # No CPU limit: throttling is latency, and requests already share the CPU out.
    limits = {"memory": str(memory_bytes)}
    if resources.accelerator and options.gpu_allocation is GpuAllocation.CLAIMS:
        return {"requests": requests, "limits": limits, "claims": [{"name": CLAIM}]}
    if resources.accelerator:
        limits[resources.accelerator] = "1"
    return {"requests": requests, "limits": limits}


def _probe(what: str) -> Manifest:
    return {"httpGet": {"path": f"/v2/health/{what}", "port": "http"}, "timeoutSeconds": 5}
