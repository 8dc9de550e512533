"""Restart detection: turns cluster observations into events, each once.

Also reports limits that are close, and variables that processes run without.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from clusters.domain.unseen import PLANNED, periods_json, stored, with_gap
from clusters.models import Cluster
from clusters.services.connection import allows_python
from deployments.domain.policy import match_json
from deployments.domain.service_file import left_out
from deployments.domain.service_state import failures
from deployments.mapping import revision_state
from deployments.models import Revision
from deployments.reconcile.service_change import Change
from events.domain.kinds import Kind
from events.models import Event
from events.services.delivery import deliveries_queue, of_cluster
from integrations.clusters.base import (
    Finding,
    Nodes,
    Observed,
    ObservedReplica,
    ObservedRevision,
    ReplicaPhase,
)
from integrations.machine.limits import Limit, noted, rose

_OF_SILENCE = ("silent_since", "silent_looks", "look_at")
_OF_OBSERVATION = ("checked_at", "observed_at", "unseen")
_WELL = (ReplicaPhase.READY, ReplicaPhase.DRAINING)
_SHORTEST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=1), timedelta(seconds=30)


def note_restarts(change: Change, seen: Observed) -> None:
    """Record an event for each replica that was restarted since the last observation."""
    reported = change.service.replica_restarts
    for revision, replica in _replicas(seen):
        if replica.restarts > reported.get(replica.name, 0):
            why = f": {replica.message}" if replica.message else ""
            message = f"replica {replica.name} ended by itself and was started again (restart {replica.restarts}){why}"
            change.event(Kind.REPLICA_RESTARTED, message, revision=revision, by_itself=True)
    change.service.replica_restarts = {replica.name: replica.restarts for _, replica in _replicas(seen)}


def summary(seen: Observed) -> dict[str, dict[str, object]]:
    """Return an observation in the form of pages and the API."""
    return {
        revision.name: {
            "weight": revision.weight_percent,
            "mirror": revision.mirror_percent,
            "match": match_json(revision.match),
            "ready": revision.ready_replicas,
            "restarts": sum(replica.restarts for replica in revision.replicas),
            "restart_numbers": [replica.restart_number for replica in revision.replicas],
            "metrics_urls": [replica.metrics_url for replica in revision.own_replicas if replica.metrics_url],
            "message": revision.message or next((r.message for r in revision.replicas if r.message), ""),
            "is_failing": is_failing(revision),
            "replicas": [_replica(replica) for replica in revision.own_replicas],
        }
        for revision in seen.revisions
    }


def _replica(replica: ObservedReplica) -> dict[str, object]:
    return {
        "name": replica.name,
        "phase": replica.phase,
        "restarts": replica.restarts,
        "started_at": replica.started_at,
        "start_s": replica.start_s,
        "message": replica.message,
    }


def is_failing(revision: ObservedRevision) -> bool:
    """Return whether a failure keeps a replica of the revision from serving now."""
    replicas = (replica for replica in revision.all_replicas if replica.phase not in _WELL)
    return revision.failure is not None or any(replica.failure is not None for replica in replicas)


def refusal(revision: ObservedRevision) -> str:
    """Return why a replica of the revision can never start; empty where none is refused permanently."""
    failed = (replica.failure for replica in revision.all_replicas if replica.phase not in _WELL)
    return next((failure.message for failure in failed if failure is not None and failure.is_final), "")


def note_failures(change: Change, seen: Observed) -> None:
    """Store the last failure of each revision."""
    for row in change.revisions:
        observed = seen.revision(row.name)
        after = failures.kept(row.last_failure, None if observed is None else observed.last_failure)
        if after != row.last_failure:
            row.last_failure = after
            row.save(update_fields=["last_failure"])
            change.is_changed = True


def note_left_out(change: Change) -> None:
    """Record once for each revision which variables of its file its processes run without."""
    for row in change.revisions:
        without = variables_left_out(row, change.service.cluster) if _has_variables(row) else ""
        if (
            without
            and not Event.objects.filter(
                service=change.service, kind=Kind.REVISION_VARIABLES_LEFT_OUT, revision=row.name
            ).exists()
        ):
            message = f"{row.name} runs without {without}"
            change.event(Kind.REVISION_VARIABLES_LEFT_OUT, message, revision=row.name, by_itself=True)


def left_out_findings(cluster: Cluster) -> Iterator[Finding]:
    """Yield a finding for each running revision without variables of its file."""
    running = Revision.objects.filter(service__cluster=cluster, stopped_at=None).exclude(
        env={}, secret_env={}, transformer={}, explainer={}
    )
    for row in running.select_related("service", "model_version").order_by("service__namespace", "name"):
        if without := variables_left_out(row, cluster):
            message = f"{row.name} runs without {without}"
            yield Finding(f"service {row.service}", False, message, "apply the service's file without them")


def variables_left_out(row: Revision, cluster: Cluster) -> str:
    """Return which recorded variables a revision's processes run without, and why; empty where they get all.

    Its model version must be loaded.
    """
    if not _has_variables(row):
        return ""
    state = revision_state(row)
    names = (*state.env, *state.secret_env)
    return left_out(names, state.containers, state.custom, is_code=state.is_code and allows_python(cluster))


def _has_variables(row: Revision) -> bool:
    return bool(row.env or row.secret_env or row.transformer or row.explainer)


def note_look(cluster: Cluster, nodes: Nodes, *, now: datetime, exec_token: dict[str, str] | None = None) -> None:
    """Record a look at a cluster, by one statement where it is as the row says.

    Args:
        cluster: its row, as it was before the look.
        exec_token: when the token of the cluster's exec plugin was made and ends (`exec_token_times`).
    """
    is_new = nodes.limits or cluster.limits or cluster.components != _components(nodes)
    is_new = is_new or cluster.silent_since or cluster.problem or cluster.exec_token != exec_token
    if is_new or cluster.observed_at is None or now - cluster.observed_at > PLANNED:
        note_components(cluster_id=cluster.pk, nodes=nodes, now=now, exec_token=exec_token)
        return
    as_before = Cluster.objects.filter(pk=cluster.pk, silent_since=None, problem="")
    as_before.update(checked_at=now, observed_at=now)  # where another look found it away, the next one says what is so


@transaction.atomic
def note_components(*, cluster_id: int, nodes: Nodes, now: datetime, exec_token: dict[str, str] | None = None) -> None:
    """Record an event for each component (gateway, worker, agent) that was restarted since the last observation, and
    for each limit of the machine that has come closer.

    Args:
        exec_token: as for `note_look`.
    """
    cluster = Cluster.objects.select_for_update().get(pk=cluster_id)
    events = []
    for component in nodes.components:
        if component.restarts > int(cluster.components.get(component.name, {}).get("restarts", 0)):
            cluster.event_seq += 1
            why = f": {component.message}" if component.message else ""
            message = f"{component.name} ended by itself and was started again (restart {component.restarts}){why}"
            events.append(
                Event(cluster=cluster, seq=cluster.event_seq, at=now, kind=Kind.COMPONENT_RESTARTED, message=message)
            )
    last = {row["name"]: row["noted"] for row in cluster.limits}
    rows = [_limit_row(limit, last.get(limit.name, "")) for limit in nodes.limits]
    for row in rows:
        if rose(last.get(row["name"], ""), row["noted"]):
            cluster.event_seq += 1
            kind, message = Kind.LIMIT_CLOSE, row["message"]
            events.append(Event(cluster=cluster, seq=cluster.event_seq, at=now, kind=kind, message=message))
    cluster.limits = rows
    cluster.components = _components(nodes)
    _observed(cluster, now)
    cluster.problem, cluster.exec_token = "", exec_token
    cluster.save(
        update_fields=["components", "limits", "event_seq", "problem", "exec_token", *_OF_OBSERVATION, *_OF_SILENCE]
    )
    Event.objects.bulk_create(events)
    if events:
        deliveries_queue(of_cluster(cluster.name, events))


@transaction.atomic
def note_silence(*, cluster_id: int, problem: str, now: datetime) -> None:
    """Record that the cluster cannot be observed, and why; the next attempt follows with exponential back-off."""
    cluster = Cluster.objects.select_for_update().get(pk=cluster_id)
    cluster.checked_at, cluster.problem = now, problem
    cluster.silent_since = cluster.silent_since or now
    cluster.silent_looks += 1
    cluster.look_at = now + pause_after(cluster.silent_looks)
    cluster.save(update_fields=["checked_at", "problem", *_OF_SILENCE])


@transaction.atomic
def note_refusal(*, cluster_id: int, problem: str, now: datetime) -> None:
    """Record that the cluster answers, but refuses access to its components."""
    cluster = Cluster.objects.select_for_update().get(pk=cluster_id)
    _observed(cluster, now)
    cluster.problem = problem
    cluster.save(update_fields=["problem", *_OF_OBSERVATION, *_OF_SILENCE])


def _observed(cluster: Cluster, now: datetime) -> None:
    periods = with_gap(stored(cluster.unseen), observed_at=cluster.observed_at, now=now)
    cluster.checked_at = cluster.observed_at = now
    cluster.unseen = periods_json(periods)
    cluster.silent_since, cluster.silent_looks, cluster.look_at = None, 0, None


def pause_after(looks: int) -> timedelta:
    """Return the pause after so many failed attempts (exponential back-off). Pure."""
    return min(_SHORTEST_PAUSE * (1 << min(looks - 1, 10)), _LONGEST_PAUSE)


def _replicas(seen: Observed) -> Iterator[tuple[str, ObservedReplica]]:
    for revision in seen.revisions:
        for replica in revision.replicas:
            yield revision.name, replica


def _limit_row(limit: Limit, last: str) -> dict[str, Any]:
    """Return a limit in the form of pages and the API; `last` is the level of the last event."""
    return {
        "name": limit.name,
        "whose": limit.whose,
        "used": limit.used,
        "most": limit.most,
        "level": limit.level,
        "message": limit.sentence,
        "noted": noted(last, limit),
    }


def _components(nodes: Nodes) -> dict[str, dict[str, object]]:
    return {
        each.name: {"ready": each.ready, "restarts": each.restarts, "message": each.message}
        for each in nodes.components
    }
