"""KEDA ScaledObject of a revision, for clusters whose operator chose KEDA. Pure.

KEDA makes its own HorizontalPodAutoscaler of it. The queries return what the metrics adapter's rules in the chart
return, summed over a revision's pods: KEDA divides by the number of replicas, as the autoscaler does.
"""

from integrations.clusters.base import Autoscaling, DesiredRevision
from integrations.clusters.kubernetes.manifests.names import Manifest
from integrations.clusters.kubernetes.manifests.scaling.behavior import behavior_of
from integrations.clusters.kubernetes.options import Keda

_FAILURES = 3  # consecutive, until Prometheus counts as unavailable
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

    Where Prometheus is unavailable, or has no data of the revision, the number stays, and does not fall below the
    reconciler's; KEDA accepts no such fallback for CPU alone.
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
            "ignoreNullValues": "false",  # else missing data would count as no load
        },
    }
