"""Why the first replica of a service does not start, for its callers. Pure.

Callers get the kind of failure and a sentence of our own: what a pod's status says, such as the end of a log, is for
those who may see the service's page.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from integrations.clusters.base import FailureReason
from integrations.clusters.kubernetes.observe.failures import failure_of, since, statuses
from integrations.clusters.kubernetes.observe.observation import failure_of_deployment

Json = Mapping[str, Any]
_SENTENCES = {
    FailureReason.MODEL_LOAD_FAILED: "its model cannot be loaded",
    FailureReason.RUNTIME_UNHEALTHY: "its runtime ends before it is ready",
    FailureReason.OUT_OF_MEMORY: "it exceeds its memory limit",
    FailureReason.IMAGE_PULL_FAILED: "its image cannot be pulled",
    FailureReason.CONTAINER_NOT_STARTED: "one of its containers cannot be started",
    FailureReason.EVICTED: "its node evicted it",
    FailureReason.UNSCHEDULABLE: "no node has room for it so far",
    FailureReason.NO_REPLICA_MADE: "the cluster does not allow its pod, such as for a quota",
}


_LASTING_S = 20.0
"""A container that the kubelet holds back after so long was tried twice: it waits 10 s before the second time."""
_STARTS = {"", "ContainerCreating", "PodInitializing"}


@dataclass(frozen=True, slots=True)
class StartFailure:
    """A failure of the first replica.

    Attributes:
        is_lasting: no request has to wait for the next try: a retry cannot help, or did not.
    """

    reason: FailureReason
    is_lasting: bool = False

    def __str__(self) -> str:
        return f"{_SENTENCES[self.reason]} ({self.reason})"


def start_failure(deployment: Json, pods: Iterable[Json], now: float) -> StartFailure | None:
    """Return the last failure of a Deployment and its pods at `now`, in Unix seconds; None without one."""
    live = [each for each in pods if "deletionTimestamp" not in each["metadata"]]
    failed = [(failure, each) for each in live if (failure := failure_of(each)) is not None]
    known = [failure_of_deployment(deployment), *(failure for failure, _ in failed)]
    last = max((each for each in known if each is not None), key=lambda each: each.at, default=None)
    if last is None:
        return None
    lasting = [failure for failure, pod in failed if failure.is_final or _is_held_back(pod, now)]
    return StartFailure(last.reason, is_lasting=bool(live) and len(lasting) == len(live))


def _is_held_back(pod: Json, now: float) -> bool:
    """Return whether the kubelet waits before it tries a container of a pod again, not for the first time."""
    waiting = (each.get("state", {}).get("waiting", {}).get("reason", "") for each in statuses(pod))
    return now - since(pod, "ContainersReady") > _LASTING_S and not _STARTS.issuperset(waiting)
