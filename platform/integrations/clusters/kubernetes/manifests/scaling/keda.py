"""A revision's ScaledObject, for clusters whose operator chose KEDA to follow the load. Pure.

KEDA makes a HorizontalPodAutoscaler of it, which is KEDA's own. The queries give what the metrics adapter's rules in
the chart give, summed over a revision's pods: KEDA divides by the number of replicas, as the autoscaler does.
"""

from integrations.clusters.base import Autoscaling, DesiredRevision
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.manifests.scaling.behavior import behavior_of
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


_CPU = "cpu"
_NAMED = "pods/"


def scaled_object(namespace: str, revision: DesiredRevision, scaling: Autoscaling, keda: Keda) -> Manifest:
    """Return the specification of a revision's ScaledObject.

    Where Prometheus is away, or knows nothing of the revision, the number stays, and does not fall below what the
    reconciler wants; of the CPU alone KEDA takes no such word.
    """
    behavior = behavior_of(scaling)
    fallback = {"failureThreshold": _FAILURES, "replicas": revision.replicas, "behavior": "currentReplicasIfHigher"}
    selector = f'namespace="{namespace}",revision="{revision.name}"'
    triggers = [
        _cpu(target) if name == _CPU else _prometheus(name, target, selector, keda)
        for name, target in sorted(scaling.targets.items())
    ]
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": revision.name},
        "pollingInterval": keda.polling_s,
        "minReplicaCount": revision.replicas,
        "maxReplicaCount": max(revision.replicas, scaling.most),
        **({} if set(scaling.targets) == {_CPU} else {"fallback": fallback}),
        **({"advanced": {"horizontalPodAutoscalerConfig": {"behavior": behavior}}} if behavior else {}),
        "triggers": triggers,
    }


def _cpu(percent: float) -> Manifest:
    return {"type": "cpu", "metricType": "Utilization", "metadata": {"value": str(round(percent))}}


def _prometheus(name: str, target: float, selector: str, keda: Keda) -> Manifest:
    metric = name.removeprefix(_NAMED)
    query = _QUERIES.get(name, "sum(" + metric + "{{{selector}}})")
    return {
        "type": "prometheus",
        "name": metric,
        "metricType": "AverageValue",
        "metadata": {
            "serverAddress": keda.prometheus,
            "query": query.format(selector=selector),
            "threshold": f"{target:g}",
            "ignoreNullValues": "false",  # else nothing known would be no load
        },
    }
