"""Pods as replicas: phase, restarts and why one is not ready. Pure."""

from collections.abc import Iterator, Mapping, Set
from datetime import datetime
from typing import Any

from integrations.clusters.base import ObservedReplica, ReplicaPhase
from integrations.clusters.kubernetes.manifests.names import METRICS_PORT, RESTART
from integrations.clusters.kubernetes.manifests.pods import RUNTIME
from integrations.clusters.kubernetes.manifests.transformer import CONTAINER

Json = Mapping[str, Any]
_WAITS_WITHOUT_TROUBLE = ("ContainerCreating", "PodInitializing")


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
    phase = _phase(pod, serving)
    return ObservedReplica(
        name=metadata["name"],
        phase=phase,
        restarts=runtime.get("restartCount", 0),
        started_at=None if running is None else datetime.fromisoformat(running["startedAt"]).timestamp(),
        metrics_url=_metrics_url(status.get("podIP", "")) if running else "",
        message="" if phase in (ReplicaPhase.READY, ReplicaPhase.DRAINING) else next(_complaints(pod), ""),
        restart_number=int(metadata.get("annotations", {}).get(RESTART, "0")),
    )


def _metrics_url(ip: str) -> str:
    host = f"[{ip}]" if ":" in ip else ip
    return f"http://{host}:{METRICS_PORT}/metrics" if ip else ""


def _phase(pod: Json, serving: Set[str]) -> ReplicaPhase:
    if "deletionTimestamp" in pod["metadata"]:
        return ReplicaPhase.DRAINING
    if pod["metadata"]["name"] in serving:
        return ReplicaPhase.READY
    waiting = (each.get("state", {}).get("waiting", {}).get("reason", "") for each in _containers(pod))
    return ReplicaPhase.BACKING_OFF if "CrashLoopBackOff" in waiting else ReplicaPhase.STARTING


def _complaints(pod: Json) -> Iterator[str]:
    """Yield one sentence for each reason why a pod is not ready, the most telling first."""
    for each in _containers(pod):
        for state in (each.get("state", {}), each.get("lastState", {})):
            ended = state.get("terminated")
            if ended and ended.get("exitCode"):
                said = (ended.get("message") or ended.get("reason") or "it said nothing").strip()
                yield f"{each['name']} ended with exit code {ended['exitCode']}: {said}"
        waiting = each.get("state", {}).get("waiting", {})
        if waiting and waiting.get("reason") not in _WAITS_WITHOUT_TROUBLE:
            yield f"{each['name']} waits: {waiting.get('message') or waiting.get('reason')}"
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] != "True":
            yield f"no node takes it: {condition.get('message', condition.get('reason', ''))}"


def _containers(pod: Json) -> list[Json]:
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
