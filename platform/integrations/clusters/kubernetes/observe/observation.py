"""Observed state of a service, from objects of the API server. Pure."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from integrations.clusters.base import (
    CompanionKind,
    Failure,
    FailureReason,
    Observed,
    ObservedCompanion,
    ObservedReplica,
    ObservedRevision,
    ObservedScaling,
    ReplicaPhase,
    printable,
)
from integrations.clusters.kubernetes.manifests.names import (
    METRICS_PORT,
    RESTART,
    SLEPT,
    companion_name,
    deployment_of,
    endpoints_of,
    pool_at,
    replicas_name,
    revision_of,
)
from integrations.clusters.kubernetes.manifests.owner import Entry
from integrations.clusters.kubernetes.manifests.routes.own_replicas import BETWEEN, Stage
from integrations.clusters.kubernetes.observe.containers import restarts_of, runtime_of
from integrations.clusters.kubernetes.observe.drift import is_woken
from integrations.clusters.kubernetes.observe.failures import failure_of, moment, statuses
from integrations.clusters.kubernetes.observe.gateway import confirmation, leads_to_pool
from integrations.clusters.kubernetes.options import GatewayReference

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Found:
    """All objects that the API server has of a service, each list sorted by name.

    Attributes:
        failures: by pod, details about failures beyond what the statuses say.
    """

    deployments: Sequence[Json] = ()
    pods: Sequence[Json] = ()
    slices: Sequence[Json] = ()
    routes: Sequence[Json] = ()
    policies: Sequence[Json] = ()
    autoscalers: Sequence[Json] = ()
    failures: Mapping[str, Failure] = field(default_factory=dict)


def observed(namespace: str, service: str, entry: Entry, found: Found, gateway: GatewayReference) -> Observed:
    """Return the service as it is; a revision's share is 0 while no replica of it takes requests."""
    able = serving(found.slices)
    replicas = _replicas(found)
    here = {name for name in _names(found.deployments) | replicas.keys() if revision_of(name) == name}
    scalings = dict(_scalings(found))
    companions = {
        name: ObservedCompanion(tuple(replicas.get(name, ())), scalings.get(name))
        for name in _names(found.deployments) - here
    }
    names = sorted(here)
    confirmed = confirmation(service, found.routes, gateway, found.policies)
    routed = confirmed.routed
    troubles = {
        str(each["metadata"]["name"]): trouble
        for each in found.deployments
        if (trouble := failure_of_deployment(each)) is not None
    }
    transformers = {name: companion_name(name, CompanionKind.TRANSFORMER) for name in names}
    explainers = {name: companion_name(name, CompanionKind.EXPLAINER) for name in names}
    taking = {name for name, its in transformers.items() if able[name] and (its not in companions or able[its])}
    slept = dict(_sleeps(found, troubles))
    taking |= slept.keys() & here  # its requests wait in the gateway
    return Observed(
        namespace=namespace,
        service=service,
        generation=entry.generation if entry.leaving else routed.generation,
        revisions=tuple(
            ObservedRevision(
                name=name,
                weight_percent=routed.weights.get(name, 0) if name in taking else 0,
                mirror_percent=routed.mirrors.get(name, 0) if name in taking else 0,
                match=routed.match(name) if name in taking else (),
                replicas=tuple(replicas.get(name, ())),
                message=_message(name, troubles, companions),
                transformer=companions.get(transformers[name]),
                explainer=companions.get(explainers[name]),
                scaling=scalings.get(name),
                failure=next(_troubles(name, troubles), None),
                is_pool=entry.is_pool,
                slept_at=slept.get(name, (None, None))[0],
                woken_at=slept.get(name, (None, None))[1],
            )
            for name in names
        ),
        message=confirmed.problem,
        preview=routed.preview if routed.preview in taking else "",
        gateway_counts=False,
    )


def _sleeps(found: Found, troubles: Mapping[str, Failure]) -> Iterator[tuple[str, tuple[float, float | None]]]:
    """Yield each revision that slept, with when it went to sleep last, and when a request woke it from that.

    That is when its first pod was made, or could not be: the API server keeps no time of a change of the number alone.
    """
    for each in found.deployments:
        name, slept_at = each["metadata"]["name"], (each["metadata"].get("annotations") or {}).get(SLEPT, "")
        if not slept_at:
            continue
        metadata = [pod["metadata"] for pod in found.pods if deployment_of(pod["metadata"]["labels"]) == name]
        made = [moment(known["creationTimestamp"]) for known in metadata if "deletionTimestamp" not in known]
        made += [troubles[name].at] if name in troubles else []
        times = [at for at in made if at is not None]
        woken_at = min(times) if times and each["spec"]["replicas"] and is_woken(each) else None
        with suppress(ValueError):
            yield name, (float(slept_at), woken_at)


def observed_in_pool(
    namespace: str, service: str, entry: Entry, found: Found, gateway: GatewayReference, *, pool: Found
) -> Observed:
    """Return a service whose revisions a pool answers for: each has the pool's replicas, or its own once they answer.

    While it moves into the pool, or out of it, other revisions are not in the pool: these get requests, and those in it
    have own replicas, once the routes are those of a service without a pool.

    Args:
        found: routes and policies of the service, and what it has of own replicas.
        pool: the pool's objects.
    """
    at, name = pool_at(entry.pool, namespace)
    able = serving(pool.slices)[replicas_name(name)]
    every = [replica_of_pod(each, able) for each in pool.pods]
    there = "" if at == namespace else at
    taking = [replace(_as_its_own(each), namespace=there) for each in every if each.phase is ReplicaPhase.READY]
    confirmed = confirmation(service, found.routes, gateway, found.policies)
    routed = confirmed.routed
    own, its = _replicas(found), observed(namespace, service, entry, found, gateway)
    outside = [each for each in its.revisions if each.name not in entry.pooled]
    stage = Stage.of(routed.own)
    in_pool = stage.is_pools and (not outside or leads_to_pool(name, found.routes))
    is_early = bool(entry.pooled) and (in_pool or stage in (Stage.OWN, Stage.MOVED, Stage.TWICE))
    by_own = {} if in_pool else {each.name: each for each in its.revisions if each.name in entry.pooled}
    if outside and not in_pool:
        by_own = {each: _moving(each, by_own.get(each), entry, taking) for each in entry.pooled}
    return Observed(
        namespace=namespace,
        service=service,
        # In between the service gets turns as one that changes.
        generation=entry.generation if entry.leaving else routed.generation - (stage in BETWEEN),
        revisions=tuple(
            by_own.get(name)
            or ObservedRevision(
                name=name,
                weight_percent=routed.weights.get(name, 0) if taking and name in entry.loaded else 0,
                match=routed.match(name) if taking and name in entry.loaded else (),
                replicas=tuple(taking) if taking and name in entry.loaded else (_waiting(name, entry, taking),),
                message=entry.failures[name][0] if name in entry.failures else "",
                pooled_as=f"{namespace}.{service}@{version}",
                own=tuple(own.get(name, ())),
            )
            for name, version in sorted(entry.pooled.items())
        )
        + tuple(_before_own(each, entry.pool) if is_early else each for each in outside),
        message=confirmed.problem,
        preview=(routed.preview if taking or routed.preview in by_own else "") or its.preview,
        gateway_counts=False,
    )


def _as_its_own(replica: ObservedReplica) -> ObservedReplica:
    """Return a pool's replica without what is of the pool alone: its failures, and when it was restarted."""
    return replace(replica, restarts=0, failure=None, restart_number=0)


def _moving(
    name: str, own: ObservedRevision | None, entry: Entry, members: Sequence[ObservedReplica]
) -> ObservedRevision:
    """Return a revision in a pool while others outside it answer: its own replicas once the pool has loaded it."""
    if own is not None and name in entry.loaded:
        return own
    if name in entry.loaded:
        return ObservedRevision(name, 0, (ObservedReplica(name, ReplicaPhase.STARTING, message="its replicas start"),))
    message = entry.failures[name][0] if name in entry.failures else ""
    return ObservedRevision(name, 0, (_waiting(name, entry, members),), message=message)


def _before_own(revision: ObservedRevision, pool: str) -> ObservedRevision:
    """Return a revision outside a pool before routes are those of a service without one: it gets no requests yet."""
    message = f"it gets requests once replicas of its service's own answer in place of pool {pool}"
    waiting = (
        replace(each, phase=ReplicaPhase.STARTING, message=each.message or message)
        if each.phase is ReplicaPhase.READY
        else each
        for each in revision.replicas
    )
    return replace(revision, weight_percent=0, replicas=tuple(waiting))


def _waiting(name: str, entry: Entry, members: Sequence[ObservedReplica]) -> ObservedReplica:
    """Return what a revision has in place of the pool's replicas until one of them has loaded it."""
    if not members:
        message = f"it waits for a replica of pool {entry.pool}"
        return ObservedReplica(name, ReplicaPhase.STARTING, message=message)
    if name not in entry.failures:
        return ObservedReplica(name, ReplicaPhase.STARTING, message=f"pool {entry.pool} loads its model")
    why, at = entry.failures[name]
    message = printable(f"pool {entry.pool} cannot load it: {why}")
    failure = Failure(FailureReason.MODEL_LOAD_FAILED, message, at)
    return ObservedReplica(name, ReplicaPhase.STARTING, message=message, failure=failure)


def serving(slices: Sequence[Json]) -> Mapping[str, set[str]]:
    """Return the names of the pods that receive requests, by Deployment, and those of all of a pool."""
    found: dict[str, set[str]] = defaultdict(set)
    for each in slices:
        found[endpoints_of(each["metadata"]["labels"])].update(_ready(each))
    return found


def _names(objects: Sequence[Json]) -> set[str]:
    return {str(each["metadata"]["name"]) for each in objects}


def _message(name: str, troubles: Mapping[str, Failure], companions: Mapping[str, ObservedCompanion]) -> str:
    """Return why a revision, or one of its companions, cannot run."""
    for trouble in _troubles(name, troubles):
        return trouble.message
    for kind in CompanionKind:
        its = companions.get(companion_name(name, kind))
        if its is not None and not its.ready_replicas and its.message:
            return f"its {kind}: {its.message}"
    return ""


def _troubles(name: str, troubles: Mapping[str, Failure]) -> Iterator[Failure]:
    """Yield the troubles of a revision's Deployment and of those of its companions."""
    for deployment in (name, *(companion_name(name, kind) for kind in CompanionKind)):
        if deployment in troubles:
            yield troubles[deployment]


def _ready(endpoint_slice: Json) -> Iterator[str]:
    for endpoint in endpoint_slice.get("endpoints") or ():
        if endpoint.get("conditions", {}).get("ready") and "targetRef" in endpoint:
            yield endpoint["targetRef"]["name"]


def replicas_of(found: Found) -> Iterator[tuple[Json, ObservedReplica]]:
    """Yield each pod with the replica it is."""
    able = serving(found.slices)
    for pod in found.pods:
        yield pod, replica_of_pod(pod, able.get(deployment_of(pod["metadata"]["labels"]), set()))


def _replicas(found: Found) -> dict[str, list[ObservedReplica]]:
    replicas: dict[str, list[ObservedReplica]] = defaultdict(list)
    for pod, plain in replicas_of(found):
        failure = found.failures.get(plain.name)
        shown = plain if failure is None else replace(plain, failure=failure, message=plain.message or failure.message)
        replicas[deployment_of(pod["metadata"]["labels"])].append(shown)
    return replicas


def failure_of_deployment(deployment: Json) -> Failure | None:
    """Return why no pods are created, such as a quota; None where they are."""
    for condition in deployment.get("status", {}).get("conditions", ()):
        if condition["type"] == "ReplicaFailure" and condition["status"] == "True":
            said = printable(f"its pods cannot be made: {condition['message']}")
            return Failure(FailureReason.NO_REPLICA_MADE, said, moment(condition["lastTransitionTime"]))
    return None


def _scalings(found: Found) -> Iterator[tuple[str, ObservedScaling]]:
    """Yield the scaling of revisions by their autoscalers, as last set on the Deployments."""
    replicas = {str(each["metadata"]["name"]): int(each["spec"]["replicas"]) for each in found.deployments}
    for each in found.autoscalers:
        name = str(each["spec"]["scaleTargetRef"]["name"])  # KEDA calls its own otherwise
        if name in replicas and "deletionTimestamp" not in each["metadata"]:
            yield name, ObservedScaling(replicas[name], _blindness(each))


def _blindness(autoscaler: Json) -> str:
    """Return why an autoscaler does not follow the load; empty where it does."""
    conditions = {each["type"]: each for each in autoscaler.get("status", {}).get("conditions") or ()}
    for needed in ("AbleToScale", "ScalingActive"):
        condition = conditions.get(needed)
        if condition is None:
            return "it has not looked at the load yet"
        if condition["status"] != "True":
            return str(condition.get("message") or condition.get("reason", "it does not say why"))
    return ""


def replica_of_pod(pod: Json, serving: Set[str]) -> ObservedReplica:
    """Return a pod as a replica.

    Args:
        serving: names of the pods that the Service's EndpointSlices send requests to.
    """
    metadata, status = pod["metadata"], pod.get("status", {})
    statuses_of_main = status.get("containerStatuses", ())
    runtime = runtime_of(statuses_of_main)
    running = runtime.get("state", {}).get("running")
    phase, failure = _phase(pod, serving), failure_of(pod)
    has_trouble = failure is not None and phase not in (ReplicaPhase.READY, ReplicaPhase.DRAINING)
    return ObservedReplica(
        name=metadata["name"],
        phase=phase,
        restarts=restarts_of(statuses_of_main),
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
