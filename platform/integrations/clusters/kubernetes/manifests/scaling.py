"""What follows a revision's load on a cluster: a HorizontalPodAutoscaler where the custom metrics API has what
revisions scale on, or a ScaledObject where the operator chose KEDA. Pure.

It and a rollout never fight over replicas: the reconciler moves the least number alone, and the autoscaler goes above
it with the load, by the same formula.
"""

from integrations.clusters.base import Autoscaling, Desired, DesiredRevision
from integrations.clusters.kubernetes.kinds import AUTOSCALER, SCALED_OBJECT
from integrations.clusters.kubernetes.manifests.keda import scaled_object
from integrations.clusters.kubernetes.manifests.names import Manifest, manifest, quantity, revision_labels
from integrations.clusters.kubernetes.options import Options

METRICS = {
    "concurrency": "fairlead_inflight_requests",
    "rps": "fairlead_requests_per_second",
    "avg_time_queue_ms": "avg_time_queue_ms",
}
"""What a scale metric is called in the custom metrics API, where it is a metric of pods."""


def is_autoscaled(revision: DesiredRevision, options: Options) -> bool:
    """Return whether a revision has an autoscaler; one that is stopped has none, which takes no 0."""
    is_there = options.custom_metrics or options.keda is not None
    return is_there and revision.autoscaling is not None and revision.replicas > 0


def autoscaler(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest | None:
    """Return what follows a revision's load; None where nothing does."""
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
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": revision.name},
        "minReplicas": revision.replicas,
        "maxReplicas": max(revision.replicas, scaling.most),
        "metrics": [_metric(METRICS[name], target) for name, target in sorted(scaling.targets.items())],
    }


def _metric(name: str, target: float) -> Manifest:
    pods = {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": quantity(target)}}
    return {"type": "Pods", "pods": pods}
