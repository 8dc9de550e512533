"""A revision's ScaledObject, for clusters whose operator chose KEDA to follow the load. Pure.

KEDA makes a HorizontalPodAutoscaler of it, which is KEDA's own. The queries give what the metrics adapter's rules in
the chart give, summed over a revision's pods: KEDA divides by the number of replicas, as the autoscaler does.
"""

from integrations.clusters.base import Autoscaling, DesiredRevision
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.options import Keda

_FAILURES = 3  # in a row, until Prometheus counts as away
_QUERIES = {
    "concurrency": "sum(fairlead_inflight_requests{{{selector}}})",
    "rps": "sum(rate(nv_inference_request_success{{{selector}}}[1m]))",
    "avg_time_queue_ms": (
        "sum(sum by (pod) (rate(nv_inference_queue_duration_us{{{selector}}}[1m])) / "
        "clamp_min(sum by (pod) (rate(nv_inference_request_success{{{selector}}}[1m])), 1e-9)) / 1000"
    ),
}


def scaled_object(namespace: str, revision: DesiredRevision, scaling: Autoscaling, keda: Keda) -> Manifest:
    """Return the specification of a revision's ScaledObject.

    Where Prometheus is away, or knows nothing of the revision, the number stays, and does not fall below what the
    reconciler wants.
    """
    triggers = [
        _trigger(name, target, namespace, revision.name, keda) for name, target in sorted(scaling.targets.items())
    ]
    fallback = {"failureThreshold": _FAILURES, "replicas": revision.replicas, "behavior": "currentReplicasIfHigher"}
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": revision.name},
        "pollingInterval": keda.polling_s,
        "minReplicaCount": revision.replicas,
        "maxReplicaCount": max(revision.replicas, scaling.most),
        "fallback": fallback,
        "triggers": triggers,
    }


def _trigger(name: str, target: float, namespace: str, revision: str, keda: Keda) -> Manifest:
    selector = f'namespace="{namespace}",revision="{revision}"'
    return {
        "type": "prometheus",
        "name": name,
        "metricType": "AverageValue",
        "metadata": {
            "serverAddress": keda.prometheus,
            "query": _QUERIES[name].format(selector=selector),
            "threshold": f"{target:g}",
            "ignoreNullValues": "false",  # else nothing known would be no load
        },
    }
