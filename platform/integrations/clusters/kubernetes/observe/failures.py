"""Last failure of a pod, from its status, with details from its events. Pure.

status   unschedulable, evicted, an image that cannot be pulled, a container that ended or cannot be made
events   what holds up a pod that has been starting for long without any of these, such as a volume
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from integrations.clusters.base import QUEUE, Failure, FailureReason, ReplicaEvent, hidden, last_lines, printable
from integrations.clusters.base.failures import reason_of_exit
from integrations.clusters.kubernetes.manifests.workloads.pods import PREPARE
from integrations.clusters.kubernetes.manifests.workloads.queues import GATE

Json = Mapping[str, Any]
MAX_EVENTS = 10
SLOW_S = 30.0
"""After so long without being ready, a pod's events are read even where its status names no failure."""

REFUSED = 3
"""The exit code of `prepare` where a retry cannot help; an older runtime ends with 2, as for any failure."""
_IMAGE = {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
_WAITS_WITHOUT_TROUBLE = {"", "ContainerCreating", "PodInitializing", "CrashLoopBackOff"}
# Kubernetes: kubelet, makeEnvironmentVariables.
_NO_SECRET = re.compile(r'secret "(?P<name>[^"]+)" not found')
_NO_KEY = re.compile(r"couldn't find key (?P<key>\S+) in Secret [^/\s]+/(?P<name>\S+)")
# The kubelet's messages (pkg/kubelet/eviction/eviction_manager.go).
_FULL_VOLUME = re.compile(r'Usage of EmptyDir volume "([a-z0-9-]+)" exceeds the limit "(\w+)"')
_FULL_DISK = re.compile(
    r'(?:Container [a-z0-9-]+ exceeded its local ephemeral storage limit "|'
    r"Pod ephemeral local storage usage exceeds the total limit of containers )(\w+)"
)
_STARTUP_PROBE = "Startup probe"  # fails while a model is being loaded, which is no failure


@dataclass(frozen=True, slots=True)
class LogOf:
    """The log that shows the cause: of a container, or of its previous process."""

    container: str
    previous: bool


def env_of(pod: Json) -> dict[str, str]:
    """Return the environment of all containers, as far as the pod names the values."""
    spec = pod.get("spec", {})
    containers = (*spec.get("initContainers", ()), *spec.get("containers", ()))
    return {each["name"]: each["value"] for one in containers for each in one.get("env", ()) if each.get("value")}


def failure_of(pod: Json) -> Failure | None:
    """Return the pod's last failure by its status; None where it never failed."""
    found = (*_of_pod(pod), *(each for status in statuses(pod) for each in _of_container(pod, status)))
    newest = max(found, key=lambda each: each.at, default=None)
    return None if newest is None else replace(newest, replica=pod["metadata"]["name"])


def log_of(pod: Json, failure: Failure) -> LogOf | None:
    """Return the log that shows the failure; None where no process ran."""
    status = next((each for each in statuses(pod) if each["name"] == failure.container), None)
    if status is None or failure.exit_code is None:
        return None
    state, last = status.get("state", {}), status.get("lastState", {})
    return LogOf(failure.container, previous="running" in state and "terminated" in last)


def with_events(failure: Failure, events: Iterable[Json], env: Mapping[str, str]) -> Failure:
    """Return the failure with the pod's events."""
    return replace(failure, events=_replica_events(events, env))


def with_log(failure: Failure, log: str, env: Mapping[str, str]) -> Failure:
    """Return the failure with the end of a container's log."""
    return replace(failure, log=last_lines(log, env))


def is_slow(pod: Json, now: float) -> bool:
    """Return whether a pod without a failure has been starting for so long that its events are to be read."""
    return "deletionTimestamp" not in pod["metadata"] and now - moment(pod["metadata"]["creationTimestamp"]) > SLOW_S


def failure_by_events(pod: Json, events: Iterable[Json], env: Mapping[str, str]) -> Failure | None:
    """Return why a slow pod is held up, by its newest warning; None without one."""
    events = list(events)
    warnings = _replica_events((each for each in events if each.get("type") == "Warning"), env)
    reporting = [each for each in warnings if not each.message.startswith(_STARTUP_PROBE)]
    if not reporting:
        return None
    newest = reporting[-1]
    unready = newest.reason == "Unhealthy"
    return Failure(
        reason=FailureReason.RUNTIME_UNHEALTHY if unready else FailureReason.CONTAINER_NOT_STARTED,
        message=f"it is not ready: {newest.message}",
        at=newest.at,
        replica=pod["metadata"]["name"],
        events=_replica_events(events, env),
    )


def statuses(pod: Json) -> list[Json]:
    """Return the statuses of all containers, in starting order."""
    status = pod.get("status", {})
    return [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]


def moment(text: str) -> float:
    """Return a time of the API server in Unix seconds."""
    return datetime.fromisoformat(text).timestamp()


def _of_pod(pod: Json) -> Iterator[Failure]:
    status = pod.get("status", {})
    if status.get("phase") == "Failed" and status.get("reason"):
        said = _exceeded(status.get("message") or "") or f"{status['reason']}: {status.get('message', '')}".rstrip(": ")
        yield Failure(FailureReason.EVICTED, _sentence(pod, said), since(pod, "Ready"))
    for condition in status.get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            said = _gated(pod) or f"no node takes it: {condition.get('message') or condition.get('reason', '')}"
            yield Failure(FailureReason.UNSCHEDULABLE, _sentence(pod, said), since(pod, "PodScheduled"))


def _gated(pod: Json) -> str:
    """Return what a pod with scheduling gates waits for; empty without gates."""
    gates = [each["name"] for each in pod.get("spec", {}).get("schedulingGates") or ()]
    if GATE in gates:
        queue = pod["metadata"].get("labels", {}).get(QUEUE, "")
        named = f"the queue {queue}" if queue else "its queue"
        return f"it waits in {named} until Kueue admits it, once the queue has quota for what it requests"
    return f"it waits until its scheduling gates are removed: {', '.join(gates)}" if gates else ""


def _exceeded(message: str) -> str:
    """Return why the kubelet evicted a pod that wrote more than it may; empty where it was something else."""
    if found := _FULL_VOLUME.search(message):
        return (
            f"it was evicted, since its files in the volume {found[1]} exceed the limit of {found[2]}; write less "
            f"there, or raise sizeLimit of the volume {found[1]} by spec.patches"
        )
    if found := _FULL_DISK.search(message):
        return f"it was evicted, since its files and logs exceed the limit of {found[1]} on the node's disk"
    return ""


def _of_container(pod: Json, status: Json) -> Iterator[Failure]:
    name = status["name"]
    waiting = status.get("state", {}).get("waiting", {})
    why = waiting.get("reason", "")
    if why == "CreateContainerConfigError" and (missing := _missing_secret(pod, name, waiting.get("message", ""))):
        at = since(pod, "ContainersReady")
        yield Failure(FailureReason.CONTAINER_NOT_STARTED, missing, at, container=name, is_final=True)
    elif why not in _WAITS_WITHOUT_TROUBLE:
        said = f"{name} waits ({why}): {waiting.get('message', '')}".rstrip(": ")
        reason = FailureReason.IMAGE_PULL_FAILED if why in _IMAGE else FailureReason.CONTAINER_NOT_STARTED
        yield Failure(reason, _sentence(pod, said), since(pod, "ContainersReady"), container=name)
    for ended in (status.get(state, {}).get("terminated") for state in ("state", "lastState")):
        if ended and ended.get("exitCode"):
            yield _of_ending(pod, name, ended)


def _missing_secret(pod: Json, container: str, said: str) -> str:
    """Return which variable's Secret is missing, by the kubelet's message, in a sentence; empty for another cause."""
    absent, no_key = _NO_SECRET.search(said), _NO_KEY.search(said)
    if absent is None and no_key is None:
        return ""
    namespace = pod["metadata"]["namespace"]
    for one in (*pod["spec"].get("initContainers", ()), *pod["spec"].get("containers", ())):
        for each in one.get("env", ()) if one["name"] == container else ():
            ref = each.get("valueFrom", {}).get("secretKeyRef", {})
            where = f"{each['name']} is key {ref.get('key')} of Secret {ref.get('name')}"
            if absent is not None and ref.get("name") == absent["name"]:
                return f"{where}, which namespace {namespace} of the cluster does not have; create it, then retry"
            if no_key is not None and (ref.get("name"), ref.get("key")) == (no_key["name"], no_key["key"]):
                return f"{where}, which does not have that key; add it to the Secret, then retry"
    return ""


def _of_ending(pod: Json, name: str, ended: Json) -> Failure:
    code, why = int(ended["exitCode"]), ended.get("reason", "")
    lines = [line for line in (ended.get("message") or "").splitlines() if line.strip()]
    if why == "OOMKilled":
        reason, how = FailureReason.OUT_OF_MEMORY, "was killed, as it wanted more memory than it may have"
    else:
        reason = FailureReason.MODEL_LOAD_FAILED if name == PREPARE else reason_of_exit(code)
        how = f"ended with exit code {code}" + (f": {lines[-1].strip()}" if lines else "")
    at = moment(ended["finishedAt"]) if ended.get("finishedAt") else since(pod, "ContainersReady")
    is_final = name == PREPARE and code == REFUSED
    return Failure(reason, _sentence(pod, f"{name} {how}"), at, exit_code=code, container=name, is_final=is_final)


def since(pod: Json, condition: str) -> float:
    """Return when a condition last changed; when the pod was created where that is not recorded."""
    conditions = {each["type"]: each for each in pod.get("status", {}).get("conditions", ())}
    changed = conditions.get(condition, {}).get("lastTransitionTime")
    return moment(changed or pod["metadata"]["creationTimestamp"])


def _sentence(pod: Json, said: str) -> str:
    return printable(hidden(said, env_of(pod)).replace("\n", " "))


def _replica_events(events: Iterable[Json], env: Mapping[str, str]) -> tuple[ReplicaEvent, ...]:
    made = (_event(each, env) for each in events)
    return tuple(sorted(made, key=lambda each: each.at)[-MAX_EVENTS:])


def _event(event: Json, env: Mapping[str, str]) -> ReplicaEvent:
    """Return an event of the core API, which old and new recorders fill in differently."""
    series = event.get("series") or {}
    at = (
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"]["creationTimestamp"]
    )
    said = hidden(str(event.get("message", "")), env).replace("\n", " ")
    count = int(series.get("count") or event.get("count") or 1)
    return ReplicaEvent(moment(at), printable(str(event.get("reason", ""))), printable(said), count)
