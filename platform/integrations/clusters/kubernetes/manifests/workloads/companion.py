"""Transformer and explainer of a revision: Deployment, Service, PodDisruptionBudget and autoscaler of each. Pure.

They find the predictor as in KServe: by the arguments `--model_name` and `--predictor_host`, and by environment
variables of these names in upper case, for programs that are not KServe's. An explainer calls what clients call: the
transformer, where there is one. Their pods are no pods of the predictor: they carry `fairlead/transformer` or
`fairlead/explainer` instead of `fairlead/revision`.
"""

from collections.abc import Iterator

from integrations.clusters.base import (
    Autoscaling,
    CompanionKind,
    Desired,
    DesiredCompanion,
    DesiredRevision,
    permitted,
)
from integrations.clusters.flags import CLOSED
from integrations.clusters.kubernetes.manifests.names import (
    COMPANION_LABELS,
    GRPC_PORT,
    HTTP_PORT,
    RESTART,
    SERVICE,
    Manifest,
    backend,
    companion_name,
    manifest,
    service_labels,
)
from integrations.clusters.kubernetes.manifests.pinned import pinned_template
from integrations.clusters.kubernetes.manifests.workloads.deployment import disruption_budget_of, rolling, service_of
from integrations.clusters.kubernetes.manifests.workloads.queues import queue_of
from integrations.clusters.kubernetes.manifests.workloads.secure import (
    SECURE,
    env_entries,
    probes,
    requested,
    secure_pod,
    without_identity,
)
from integrations.clusters.kubernetes.manifests.workloads.volumes import TMP_GIB, empty
from integrations.clusters.kubernetes.options import Options

CONTAINERS = tuple(kind.value for kind in CompanionKind)
"""The names of companions' containers."""


def companions(desired: Desired, revision: DesiredRevision, options: Options) -> Iterator[Manifest]:
    """Yield the objects of a revision's transformer and explainer; none without these."""
    for kind, its in revision.companions.items():
        yield from _companion(desired, revision, kind, its, options)


def _companion(
    desired: Desired, revision: DesiredRevision, kind: CompanionKind, its: DesiredCompanion, options: Options
) -> Iterator[Manifest]:
    name, label = companion_name(revision.name, kind), COMPANION_LABELS[kind]
    chosen = {SERVICE: desired.service, label: revision.name}
    labels = {**service_labels(desired.service), "app.kubernetes.io/name": name, label: revision.name}
    template = pinned_template(revision, name) or _pod_template(desired, revision, kind, options, labels)
    yield manifest("apps/v1", "Deployment", desired, name, labels, spec=rolling(chosen, template))
    yield manifest("v1", "Service", desired, name, labels, spec=service_of(chosen))
    yield manifest("policy/v1", "PodDisruptionBudget", desired, name, labels, spec=disruption_budget_of(chosen))
    if its.autoscaling is not None and is_companion_autoscaled(its):
        spec = _autoscaler(name, its.replicas, its.autoscaling)
        yield manifest("autoscaling/v2", "HorizontalPodAutoscaler", desired, name, labels, spec=spec)


def is_companion_autoscaled(its: DesiredCompanion) -> bool:
    """Return whether a companion has an autoscaler; CPU and memory need no custom metrics."""
    return its.autoscaling is not None and its.replicas > 0


def _autoscaler(name: str, least: int, scaling: Autoscaling) -> Manifest:
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
        "minReplicas": least,
        "maxReplicas": max(least, scaling.most),
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": round(percent)}},
            }
            for name, percent in sorted(scaling.targets.items())
        ],
    }


def _pod_template(
    desired: Desired, revision: DesiredRevision, kind: CompanionKind, options: Options, labels: dict[str, str]
) -> Manifest:
    pod = {**secure_pod(desired, options), "containers": [_container(desired, revision, kind, options)]}
    annotations = {RESTART: str(revision.restart_number), **without_identity(options, kind.value)}
    return {
        "metadata": {"labels": {**queue_of(revision, options), **labels}, "annotations": annotations},
        "spec": {**pod, "volumes": [empty("tmp", TMP_GIB)]},
    }


def _container(desired: Desired, revision: DesiredRevision, kind: CompanionKind, options: Options) -> Manifest:
    its = revision.companions[kind]
    called = f"{backend(revision) if kind is CompanionKind.EXPLAINER else revision.name}.{desired.namespace}"
    predictor = f"{called}:{HTTP_PORT}"
    fixed = {"FAIRLEAD_REVISION": revision.name, "MODEL_NAME": revision.model_name, "PREDICTOR_HOST": predictor}
    env = permitted(its.env, is_code=True)  # its image is whatever its author likes
    secret_env = permitted(its.secret_env, is_code=True)
    fixed["PREDICTOR_GRPC_HOST"] = f"{called}:{GRPC_PORT}"
    container: Manifest = {
        "name": kind.value,
        "image": its.image,
        "args": [*its.args, f"--model_name={revision.model_name}", f"--predictor_host={predictor}"],
        "env": env_entries({**fixed, **env, **CLOSED}, secret_env),
        "ports": [
            {"name": "http", "containerPort": its.http_port, "protocol": "TCP"},
            {"name": "grpc", "containerPort": its.grpc_port, "protocol": "TCP"},
        ],
        "resources": requested(its.resources, options),
        "securityContext": SECURE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **probes(options),
        "lifecycle": {"preStop": {"sleep": {"seconds": options.pre_stop_s}}},
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108 - a mount in a pod
    }
    return {**container, "command": list(its.command)} if its.command else container
