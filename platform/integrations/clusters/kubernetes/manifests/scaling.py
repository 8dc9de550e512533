"""A revision's HorizontalPodAutoscaler, for clusters whose custom metrics API has what revisions scale on. Pure.

It and a rollout never fight over replicas: the reconciler moves `minReplicas` alone, and the autoscaler goes above it
with the load, by the same formula.
"""

from integrations.clusters.base import Desired, DesiredRevision
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
    return options.custom_metrics and revision.autoscaling is not None and revision.replicas > 0


def autoscaler(desired: Desired, revision: DesiredRevision, options: Options) -> Manifest | None:
    """Return a revision's autoscaler; None where it has none."""
    scaling = revision.autoscaling
    if scaling is None or not is_autoscaled(revision, options):
        return None
    return manifest(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        desired,
        revision.name,
        revision_labels(desired.service, revision.name),
        spec={
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": revision.name},
            "minReplicas": revision.replicas,
            "maxReplicas": max(revision.replicas, scaling.most),
            "metrics": [_metric(METRICS[name], target) for name, target in sorted(scaling.targets.items())],
        },
    )


def _metric(name: str, target: float) -> Manifest:
    pods = {"metric": {"name": name}, "target": {"type": "AverageValue", "averageValue": quantity(target)}}
    return {"type": "Pods", "pods": pods}
