"""Reconcile loop, which brings services to their desired state: observe -> advance -> record -> apply.

One `tick` is one pass of the loop for one service. It holds the service's lease, calls the cluster with no transaction
open, decides with pure functions, records under the row lock, and then sends the whole desired state to the cluster.
Record comes before apply, so a crash in between is repaired by the next tick; applying twice changes nothing. Two
reconcilers cannot disagree: the lease lets one in at a time, one that lost it finds a higher `changes` and records
nothing, and its desired state has a lower generation, which the cluster ignores.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache

from django.db import transaction

from common.errors import FairleadError, NotFound, Unavailable
from common.http import request_id
from deployments import mapping
from deployments.domain.autoscaling import rollout_capacity
from deployments.domain.phases import Phase, ServicePhase
from deployments.domain.rollout import CanarySeen, Observation, advance, pass_over
from deployments.domain.rollout.approvals import Tally
from deployments.domain.rollout.event_messages import Kind
from deployments.domain.service_state import drift as drifting
from deployments.domain.service_state.desired import RevisionState
from deployments.domain.service_state.quiescence import UNSETTLED, Turn, is_settled
from deployments.domain.service_state.service_lifecycle import comes_alive, is_confirmed, retire, standing, with_refusal
from deployments.models import Approval, InferenceService, Rollout
from deployments.reconcile import lease, restarts
from deployments.reconcile.participants import comparison, replicas, traffic
from deployments.reconcile.participants.evidence import Evidence, Metrics, gather, run_keep
from deployments.reconcile.participants.gates import questions_of, questions_open, questions_pass_over
from deployments.reconcile.participants.metric_queries import Ask, ask_nobody
from deployments.reconcile.participants.surge import shares_of
from deployments.reconcile.service_change import Change, changing, load
from deployments.reconcile.service_counters import expect_end
from deployments.selectors import approval_tally
from integrations.clusters.base import ClusterDriver, Desired, Drift, Observed, ObservedRevision, Sample
from recordings.reconcile import payloads

BLIND = timedelta(minutes=1)
"""A longer time without a look at the cluster (all was off, or the cluster away) counts for no hold and no deadline."""


class Outcome(StrEnum):
    """The outcome of a tick."""

    DONE = "done"
    BUSY = "busy"
    OVERTAKEN = "overtaken"
    REMOVED = "removed"


class _OvertakenError(Exception):
    """The service was changed since it was read; rolls the transaction back."""


@dataclass(frozen=True, slots=True)
class Outside:
    """The external dependencies of a tick.

    Attributes:
        metrics: reads the counters of observed replicas (`integrations.metrics.counters.collect`).
        clock: the time now, with time zone.
        scale_down_window: how long fewer replicas must have sufficed before some are stopped.
        ask: sends queries to Prometheus (`integrations.metrics.prometheus`).
    """

    driver: ClusterDriver
    metrics: Metrics
    clock: Callable[[], datetime]
    scale_down_window: timedelta = timedelta(minutes=5)
    ask: Ask = ask_nobody


def tick(service_id: int, outside: Outside) -> Outcome:
    """Reconcile one service once.

    Returns:
        BUSY: another reconciler has it. OVERTAKEN: it was changed meanwhile, nothing was recorded; tick again.
        REMOVED: its deletion is complete.

    Raises:
        Unavailable: the cluster did not take the desired state; the record stays and the next tick applies it.
    """
    owner = lease.take(service_id, outside.clock())
    if not owner:
        return Outcome.BUSY
    settled = UNSETTLED
    try:
        outcome, settled = _tick(service_id, owner, outside)
        return outcome
    except _OvertakenError:
        return Outcome.OVERTAKEN
    finally:
        lease.give_back(service_id, owner, outside.clock(), settled=settled)


def _tick(service_id: int, owner: str, outside: Outside) -> tuple[Outcome, int]:
    """Return the outcome, and the number of changes at which the service is settled, or UNSETTLED."""
    try:
        read = load(service_id, now=outside.clock())
    except NotFound:
        return Outcome.REMOVED, UNSETTLED
    with request_id.acting_for(read.service.request_id):
        if read.service.deleting_at is not None:
            return _remove(read, owner, outside), UNSETTLED
        return _reconcile(read, owner, outside)


def _reconcile(read: Change, owner: str, outside: Outside) -> tuple[Outcome, int]:
    if not read.revisions:
        return Outcome.DONE, UNSETTLED  # its first model is still being imported, which its reason says
    seen, problem = _observe(read.service, outside.driver)
    confirmed = seen is not None and is_confirmed(read.state(), read.service.generation, seen)
    unseen = _unseen(read.service, read.rollout, read.now)
    metrics = cache(outside.metrics)  # analysis and scaling are to see the same counters, read once
    taken = payloads.take(read, outside.driver)
    compared = comparison.carry_on(read.rollout, taken, confirmed=confirmed, now=read.now)
    evidence = gather(
        read.rollout,
        seen,
        confirmed=confirmed,
        metrics=metrics,
        ask=outside.ask,
        now=read.now,
        unseen=unseen,
        compared=None if compared is None else compared.result,
    )
    samples = _load(read, seen, metrics)
    looked = traffic.look(read.service, seen, metrics, read.now)
    kept = payloads.keep(read, taken)
    with changing(read.service.pk, now=read.now) as change:
        if change.service.changes != read.service.changes or change.service.lease_owner != owner:
            raise _OvertakenError
        _record(change, seen, problem or evidence.problem, evidence, confirmed=confirmed)
        if seen is not None:
            replicas.set_replicas(change, seen, samples, window=outside.scale_down_window)
        traffic.keep(change.service, change.revisions, seen, looked, change.now)
        payloads.note(change, taken, kept)
        comparison.note(compared)
        _describe(change, seen, (problem and _unseen_since(read.service, problem)) or evidence.problem)
    desired = change.desired()
    if not lease.holds(read.service.pk, owner, outside.clock()):
        return Outcome.OVERTAKEN, UNSETTLED
    _note_drift(change.service, _apply(change.service, desired, outside.driver), change.now)
    return Outcome.DONE, change.service.changes if _is_settled(change, seen) else UNSETTLED


def _is_settled(change: Change, seen: Observed | None) -> bool:
    """Return whether the tick that recorded `change` left the service settled."""
    service, state = change.service, change.state()
    return is_settled(
        Turn(
            phase=ServicePhase(service.phase),
            state=state,
            seen=seen,
            is_confirmed=seen is not None and is_confirmed(state, service.generation, seen),
            is_waiting=bool(service.waits_for) or service.awaited_import_id is not None,
            is_rolling=change.rollout is not None,
            is_tapped=bool(service.recorded_percent or service.tap_cursor),
        )
    )


def _apply(service: InferenceService, desired: Desired, driver: ClusterDriver) -> Sequence[Drift]:
    """Apply the desired state to the cluster, and return the drift found there; record and raise a refusal.

    An unreachable cluster is no refusal; observations report it.
    """
    try:
        drift = driver.apply(desired)
    except Unavailable:
        raise
    except FairleadError as error:
        _note_refusal(service, error.message)
        raise
    _note_refusal(service, "")
    return drift


def _note_refusal(service: InferenceService, refusal: str) -> None:
    if refusal != service.refusal:
        InferenceService.objects.filter(pk=service.pk).update(refusal=refusal)


def _observe(service: InferenceService, driver: ClusterDriver) -> tuple[Observed | None, str]:
    """Return the cluster's observation of the service, or None and why it cannot be read."""
    try:
        return driver.observe(service.namespace, service.name), ""
    except Unavailable as error:
        return None, error.message


def _unseen_since(service: InferenceService, problem: str) -> str:
    """Return why the cluster cannot be read, and when it last could."""
    return f"{problem} (last seen {service.seen_at:%Y-%m-%d %H:%M:%S} UTC)" if service.seen_at else problem


def _load(read: Change, seen: Observed | None, metrics: Metrics) -> Sequence[Sample] | None:
    """Return the counters of running replicas where some replica count depends on them; None where they are unknown."""
    if seen is None or not replicas.follows_load(read):
        return None
    try:
        return metrics(seen)
    except Unavailable:
        return None


def _record(change: Change, seen: Observed | None, problem: str, evidence: Evidence, *, confirmed: bool) -> None:
    """Record the consequences of the observation."""
    service = change.service
    if seen is not None:
        replicas.adopt(change, seen)
    if change.rollout is not None:
        _advance(change, change.rollout, seen, problem, evidence, confirmed=confirmed)
    if seen is not None:
        _follow_cluster(change, seen)
        service.seen_at = change.now
        InferenceService.objects.filter(pk=service.pk).update(seen_at=change.now)


def _advance(
    change: Change, row: Rollout, seen: Observed | None, problem: str, evidence: Evidence, *, confirmed: bool
) -> None:
    """Advance the state machine by the observation, and record the analysis and the rollout's new state."""
    expect_end(row.pk, change.service.namespace, change.service.name)
    state, unseen = mapping.rollout_state(row), _unseen(change.service, row, change.now)
    if seen is not None and unseen:
        questions_pass_over(rollout=row, unseen=unseen)
    observation = Observation(
        canary=None if seen is None else _canary(row, seen),
        confirmed=confirmed,
        gateway_message=change.service.refusal or _gateway_message(seen),
        finding=evidence.finding,
        background=evidence.background,
        problem=problem,
        approvals=approval_tally(rollout=row, state=state, now=change.now),
        webhooks=questions_of(rollout=row, state=state, now=change.now),
    )
    if evidence.runs:
        for run in evidence.runs:
            run_keep(run=run, now=change.now)
        row.latency_edges_us = {**evidence.edges_us, **row.latency_edges_us}
        row.save(update_fields=["latency_edges_us"])
        change.is_changed = True
    if seen is not None:
        state = pass_over(state, unseen)
    after = advance(state, observation, change.now)
    if state.asks_for_approval and after.phase not in (state.phase, Phase.DEGRADED, Phase.ABORTED):
        _use(observation.approvals, change.now)
    change.move(row, after)
    questions_open(rollout=row, state=after, now=change.now)


def _use(approvals: Tally | None, now: datetime) -> None:
    """Record which approvals let the rollout proceed."""
    used = [] if approvals is None else [approval.id for approval in approvals.counting]
    Approval.objects.filter(pk__in=used).update(used_at=now)


def _unseen(service: InferenceService, rollout: Rollout | None, now: datetime) -> timedelta:
    """Return how long the reconciler did not see the service; zero while ticks follow each other as usual.

    The time before a rollout began does not count: settled services have fewer ticks.
    """
    since = service.seen_at or now
    gap = now - (since if rollout is None else max(since, rollout.attempt_started_at))
    return gap if gap >= BLIND else timedelta(0)


def _canary(row: Rollout, seen: Observed) -> CanarySeen:
    stable, canary = (mapping.revision_state(each) for each in (row.from_revision, row.to_revision))
    stable = rollout_capacity.as_seen(stable, seen.revision(stable.name))
    there = seen.revision(canary.name)
    least, full = (
        rollout_capacity.bounds_of_canary(stable, canary, mapping.rollout_state(row)).least,
        rollout_capacity.at_full(stable, canary),
    )
    state, together = mapping.rollout_state(row), 0
    if not state.policy.surge:
        together = state.full_replicas or stable.replicas
        least = shares_of(state, together)[1]
    if row.to_revision.created_at < row.started_at:
        # The way back does not wait for more replicas than must be: who goes it wants to be rid of what is live.
        least, full = canary.scaling.min_replicas, 0
    return CanarySeen(
        replicas_wanted=least,
        replicas_ready=0 if there is None else there.ready_replicas,
        restarts={} if there is None else {replica.name: replica.restarts for replica in there.replicas},
        message="" if there is None else there.message or _complaint(there),
        replicas_at_full=full,
        shared_replicas=together,
        transformer=_transformers(stable, canary, there, is_back=row.to_revision.created_at < row.started_at),
        refusal="" if there is None else restarts.refusal(there),
    )


def _transformers(
    stable: RevisionState, canary: RevisionState, there: ObservedRevision | None, *, is_back: bool
) -> CanarySeen | None:
    its, seen = canary.transformer, None if there is None else there.transformer
    if its is None:
        return None
    return CanarySeen(
        replicas_wanted=its.min_replicas if is_back else canary.transformer_replicas,
        replicas_ready=0 if seen is None else seen.ready_replicas,
        restarts={} if seen is None else {replica.name: replica.restarts for replica in seen.replicas},
        message="" if seen is None else seen.message,
        replicas_at_full=0 if is_back else rollout_capacity.transformers_at_full(stable, canary),
    )


def _complaint(there: ObservedRevision) -> str:
    own = next((replica.message for replica in there.replicas if replica.message), "")
    return own or ("" if there.transformer is None else there.transformer.message)


def _gateway_message(seen: Observed | None) -> str:
    if seen is None:
        return ""
    return seen.message or next((revision.message for revision in seen.revisions if revision.message), "")


def _follow_cluster(change: Change, seen: Observed) -> None:
    """Record what follows from the observation: the service comes alive, old revisions stop, restarts become events."""
    service = change.service
    if seen.generation > service.generation:
        # The database is older than the cluster (restored from a copy): a lower number would be ignored for ever.
        service.generation = seen.generation + 1
    state = change.state()
    if comes_alive(state, seen):
        service.live_at = change.now
        change.event(Kind.SERVICE_READY, f"service {service} has its first ready replica and gets its requests now")
        state = change.state()
    change.put_revisions(retire(state, seen, change.now).revisions)
    restarts.note_restarts(change, seen)
    restarts.note_failures(change, seen)
    restarts.note_left_out(change)
    service.observed = restarts.summary(seen)


def _note_drift(service: InferenceService, found: Sequence[Drift], now: datetime) -> None:
    """Record the drift found on the cluster; without anything new, nothing is written."""
    before = drifting.stored(service.drift)
    after, lines = drifting.note(before, found, now)
    if after == before:
        return
    with changing(service.pk, now=now) as change:
        change.service.drift = drifting.to_json(after)
        for line in lines:
            change.event(line.kind, line.message, by_itself=True)


def _describe(change: Change, seen: Observed | None, problem: str) -> None:
    """Record the service's phase and its reason."""
    rollout = None if change.rollout is None else mapping.rollout_state(change.rollout).reason
    before = ServicePhase(change.service.phase)
    now = with_refusal(standing(change.state(), before, seen, rollout, problem), change.service.refusal)
    change.service.phase, change.service.reason = now.phase, now.reason
    change.service.standing = now.waits_for or ""
    if now.phase is ServicePhase.DEGRADED and before is not ServicePhase.DEGRADED:
        change.event(Kind.SERVICE_DEGRADED, now.reason, by_itself=True)
    if before is ServicePhase.DEGRADED and now.phase is not ServicePhase.DEGRADED:
        recovered = f"service {change.service} has recovered: {now.reason}"
        change.event(Kind.SERVICE_READY, recovered, by_itself=True)


def _remove(read: Change, owner: str, outside: Outside) -> Outcome:
    """Drain the service on the cluster; once the cluster has nothing of it, delete its rows."""
    service = read.service
    outside.driver.delete(service.namespace, service.name, service.generation)
    seen = outside.driver.observe(service.namespace, service.name)
    if seen.revisions or seen.generation:
        return Outcome.DONE
    with transaction.atomic():
        row = InferenceService.objects.select_for_update().filter(pk=service.pk, lease_owner=owner).first()
        if row is None or row.changes != service.changes:
            raise _OvertakenError
        row.delete()
    return Outcome.REMOVED
