"""Autoscaler of a revision: HorizontalPodAutoscaler, or KEDA ScaledObject. Pure.

The first where the custom metrics API has the metrics that revisions scale on, the second where the operator chose
KEDA. It and a rollout never fight over replicas: the reconciler moves only the minimum, and the autoscaler goes above
it with the load, by the same formula.
"""

from common.errors import InvalidInput
from integrations.clusters.base import Autoscaling, Desired, DesiredRevision
from integrations.clusters.kubernetes.api.resource_types import AUTOSCALER, SCALED_OBJECT
from integrations.clusters.kubernetes.manifests.names import Manifest, manifest, quantity, revision_labels
from integrations.clusters.kubernetes.manifests.scaling.behavior import behavior_of
from integrations.clusters.kubernetes.manifests.scaling.keda import scaled_object
from integrations.clusters.kubernetes.options import Options

CPU = "cpu"
METRICS = {
    "concurrency": "fairlead_inflight_requests",
    "rps": "fairlead_requests_per_second",
    "avg_time_queue_ms": "avg_time_queue_ms",
}
"""Names of scale metrics in the custom metrics API, for metrics of pods."""
_NAMED = "pods/"


def is_autoscaled(revision: DesiredRevision, options: Options) -> bool:
    """Return whether a revision has an autoscaler; a stopped one has none, since autoscalers reject 0.

    Every cluster with a metrics server measures the CPU.
    """
    scaling = revision.autoscaling
    if scaling is None or not revision.replicas:
        return False
    return options.custom_metrics or options.keda is not None or set(scaling.targets) == {CPU}


def refuse_unmeasured(desired: Desired, options: Options) -> None:
    """Raise InvalidInput where a revision scales on a metric that the cluster does not provide."""
    if options.custom_metrics or options.keda is not None:
        return
    for revision in desired.revisions:
        names = () if revision.autoscaling is None else revision.autoscaling.targets
        unknown = next((name for name in names if name.startswith(_NAMED)), None)
        if unknown is not None:
            raise InvalidInput(
                f"spec.predictor.scaleMetric is {unknown}, but cluster {options.name or 'file'} says neither "
                "customMetrics nor keda, so that nothing there knows it; choose another, or let the operator say one",
                field="spec.predictor.scaleMetric",
            )


def autoscaler(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest | None:
    """Return a revision's autoscaler; None without one."""
    scaling = revision.autoscaling
    if scaling is None or not is_autoscaled(revision, options):
        return None
    if options.keda is not None:
        kind, spec = SCALED_OBJECT, scaled_object(desired.namespace, revision, scaling, options.keda)
    else:
        kind, spec = AUTOSCALER, _specification(revision, scaling)
    labels = revision_labels(desired.service, revision.name)
    return manifest(kind.api_version, kind.kind, desired, revision.name, labels, spec=spec)


def _specification(revision: DesiredRevision, scaling: Autoscaling) -> Manifest:
    behavior = behavior_of(scaling)
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": revision.name},
        "minReplicas": revision.replicas,
        "maxReplicas": max(revision.replicas, scaling.most),
        "metrics": [_metric(name, target) for name, target in sorted(scaling.targets.items())],
        **({"behavior": behavior} if behavior else {}),
    }


def _metric(name: str, target: float) -> Manifest:
    if name == CPU:
        utilization = {"type": "Utilization", "averageUtilization": round(target)}
        return {"type": "Resource", "resource": {"name": CPU, "target": utilization}}
    metric = {"name": METRICS.get(name) or name.removeprefix(_NAMED)}
    return {
        "type": "Pods",
        "pods": {"metric": metric, "target": {"type": "AverageValue", "averageValue": quantity(target)}},
    }
