"""Replica state of pods: phase, restarts, and why one is not ready. Pure."""

from collections.abc import Mapping, Set
from typing import Any

from integrations.clusters.base import ObservedReplica, ReplicaPhase
from integrations.clusters.kubernetes.manifests.names import METRICS_PORT, RESTART
from integrations.clusters.kubernetes.manifests.workloads.pods import RUNTIME
from integrations.clusters.kubernetes.manifests.workloads.transformer import CONTAINER
from integrations.clusters.kubernetes.observe.failures import failure_of, moment, statuses

Json = Mapping[str, Any]


def replica(pod: Json, serving: Set[str]) -> ObservedReplica:
    """Return a pod as a replica.

    Args:
        serving: names of the pods that the Service's EndpointSlices send requests to.
    """
    metadata, status = pod["metadata"], pod.get("status", {})
    runtime: Json = next(
        (each for each in status.get("containerStatuses", ()) if each["name"] in (RUNTIME, CONTAINER)), {}
    )
    running = runtime.get("state", {}).get("running")
    phase, failure = _phase(pod, serving), failure_of(pod)
    has_trouble = failure is not None and phase not in (ReplicaPhase.READY, ReplicaPhase.DRAINING)
    return ObservedReplica(
        name=metadata["name"],
        phase=phase,
        restarts=runtime.get("restartCount", 0),
        metrics_url=_metrics_url(status.get("podIP", "")) if running else "",
        started_at=None if running is None else moment(running["startedAt"]),
        message=failure.message if failure is not None and has_trouble else "",
        restart_number=int(metadata.get("annotations", {}).get(RESTART, "0")),
        failure=failure,
    )


def _metrics_url(ip: str) -> str:
    host = f"[{ip}]" if ":" in ip else ip
    return f"http://{host}:{METRICS_PORT}/metrics" if ip else ""


def _phase(pod: Json, serving: Set[str]) -> ReplicaPhase:
    if "deletionTimestamp" in pod["metadata"]:
        return ReplicaPhase.DRAINING
    if pod["metadata"]["name"] in serving:
        return ReplicaPhase.READY
    waiting = (each.get("state", {}).get("waiting", {}).get("reason", "") for each in statuses(pod))
    return ReplicaPhase.BACKING_OFF if "CrashLoopBackOff" in waiting else ReplicaPhase.STARTING
