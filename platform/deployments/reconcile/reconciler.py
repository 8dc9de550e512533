"""Reconcile loop, which brings services to their desired state: observe; collect all; advance and record all; apply.

One `tick` is one pass of the loop for one service. It holds the service's lease, observes the cluster and lets each
participant collect with no transaction open, lets all of them record under the row lock (one of them advances the
rollout), and then sends the whole desired state to the cluster. Record comes before apply, so a crash in between is
repaired by the next tick; applying twice changes nothing. Two reconcilers cannot disagree: the lease lets one in at a
time, one that lost it finds a higher `changes` and records nothing, and its desired state has a lower generation, which
the cluster ignores. Values of secrets are read and passed on under a lock, after a look at the lease.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any

from django.db import transaction
from django.utils.module_loading import import_string

from clusters.models import Cluster
from common import log_fields
from common.errors import FairleadError, NotFound, Unavailable
from common.http import request_id
from deployments.domain.phases import ServicePhase
from deployments.domain.service_file.clusters import LOCAL
from deployments.domain.service_state import drift as drifting
from deployments.domain.service_state.quiescence import UNSETTLED, TickResult, is_settled
from deployments.domain.service_state.service_lifecycle import is_confirmed
from deployments.models import InferenceService
from deployments.reconcile import lease, renewal
from deployments.reconcile.memory import Remembered, remembered
from deployments.reconcile.participants import REGISTERED
from deployments.reconcile.participants.comparison import COMPARISON
from deployments.reconcile.participants.evidence import EVIDENCE
from deployments.reconcile.participants.lifecycle import LIFECYCLE, describe
from deployments.reconcile.participants.model_copies import MODEL_COPIES
from deployments.reconcile.participants.pod_templates import TEMPLATES
from deployments.reconcile.participants.replicas import ADOPTED_REPLICAS, REPLICAS
from deployments.reconcile.participants.rollout import ROLLOUT
from deployments.reconcile.participants.taps import TAPS
from deployments.reconcile.participants.traffic import TRAFFIC
from deployments.reconcile.service_change import Change, OvertakenError, changing, changing_as_read, load
from deployments.reconcile.turn import Outside, Participant, Turn
from integrations.clusters.base import Drift, Observed
from integrations.otlp.tracing import Span, of_process
from sealed_secrets.selectors import values_of

__all__ = ["Outcome", "Outside", "tick"]

PARTICIPANTS: tuple[Participant[Any], ...] = (
    TAPS,
    COMPARISON,
    EVIDENCE,
    ADOPTED_REPLICAS,
    TEMPLATES,
    ROLLOUT,
    LIFECYCLE,
    REPLICAS,
    MODEL_COPIES,
    TRAFFIC,
)
"""Parts of every turn, in the order in which they collect and record; those of other apps follow."""


_SURE = renewal.HELD - timedelta(seconds=2)
"""For so long after its begin a turn has its lease for certain: none is taken before it runs out."""
_SLOW = timedelta(seconds=1)
"""A turn of this duration has a trace although it changes nothing."""


class Outcome(StrEnum):
    """The outcome of a tick."""

    DONE = "done"
    BUSY = "busy"
    OVERTAKEN = "overtaken"
    REMOVED = "removed"


def tick(service_id: int, outside: Outside) -> Outcome:
    """Reconcile one service once.

    Returns:
        BUSY: another reconciler has it. OVERTAKEN: it was changed meanwhile, nothing was recorded; tick again.
        REMOVED: its deletion is complete.

    Raises:
        Unavailable: the cluster did not take the desired state; the record stays and the next tick applies it.
    """
    began = outside.clock()
    owner = lease.take(service_id, began)
    if not owner:
        return Outcome.BUSY
    found = _Found(Outcome.OVERTAKEN)
    renewed = renewal.of_process.renewed(lambda: lease.renew(service_id, owner, outside.clock()))
    with of_process.span("reconcile", if_kept=True) as span, renewed:
        try:
            found = _tick(service_id, owner, outside, span)
        except OvertakenError:
            pass
        finally:
            ended = outside.clock()
            is_mine = lease.give_back(service_id, owner, ended, settled=found.settled)
        if outside.memory is not None and found.left is not None and is_mine:
            outside.memory.keep(found.left, ticked_at=ended)
        span.set("fairlead.outcome", found.outcome)
        if found.outcome is not Outcome.DONE or ended - began >= _SLOW:
            span.keep()
    return found.outcome


@dataclass(frozen=True, slots=True)
class _Found:
    """How a turn ended.

    Attributes:
        settled: the number of changes at which the service is settled, or UNSETTLED.
        left: the service as the turn left it, where the next turn of one that moves may begin with that.
    """

    outcome: Outcome
    settled: int = UNSETTLED
    left: Remembered | None = None


def _tick(service_id: int, owner: str, outside: Outside, span: Span) -> _Found:
    try:
        known = _known(service_id, outside)
    except NotFound:
        return _Found(Outcome.REMOVED)
    read = known.change
    service, changes = read.service, read.service.changes
    about = {"service": str(service), "cluster": _cluster_name(service.cluster_id)}
    for name, value in {**about, "request_id": service.request_id}.items():
        span.set(f"fairlead.{name}", value)
    with request_id.acting_for(service.request_id), log_fields.about(**about):
        if service.deleting_at is not None:
            return _Found(_remove(read, owner, outside))
        found = _reconcile(known, owner, outside)
        if service.changes != changes:
            span.keep()
        return found


def _known(service_id: int, outside: Outside) -> Remembered:
    """Return the service, as this process remembers it or as it is read; raises NotFound."""
    memory, now = outside.memory, outside.clock()
    known = None if memory is None else memory.recall(service_id, now=now)
    return known or remembered(load(service_id, now=now), memory)


@lru_cache(maxsize=1000)
def _cluster_name(cluster_id: int) -> str:
    """Return a cluster's name, which never changes; its row is too large to be read by every turn."""
    return str(Cluster.objects.values_list("name", flat=True).get(pk=cluster_id))


def _reconcile(known: Remembered, owner: str, outside: Outside) -> _Found:
    read, events = known.change, known.change.service.event_seq
    if not read.revisions:
        return _Found(Outcome.DONE)  # its first model is still being imported, which its reason says
    turn, participants = _observe(known, outside), _participants()
    turn.collect(participants)
    with changing_as_read(read, owner=owner) as change:
        for participant in participants:
            participant.record(change, turn.found(participant))
        describe(change, turn)
    has_drifted = _note_drift(change.service, _apply(change, owner, outside), change.now)
    if _is_settled(change, turn.seen, participants):
        return _Found(Outcome.DONE, settled=change.service.changes)
    # What an event reports may have changed which rows belong to the next turn.
    is_known = not has_drifted and change.service.event_seq == events
    return _Found(Outcome.DONE, left=known if is_known else None)


@cache
def _participants() -> tuple[Participant[Any], ...]:
    return (*PARTICIPANTS, *map(import_string, REGISTERED))


def _observe(known: Remembered, outside: Outside) -> Turn:
    """Return a turn with the cluster's observation, or with why it cannot be read."""
    read = known.change
    try:
        seen = outside.driver.observe(read.service.namespace, read.service.name)
    except Unavailable as error:
        return Turn(read, outside, None, error.message, known.kept)
    return Turn(read, outside, seen, kept=known.kept)


def _is_settled(change: Change, seen: Observed | None, participants: Iterable[Participant[Any]]) -> bool:
    """Return whether the tick that recorded `change` left the service settled."""
    return is_settled(
        TickResult(
            phase=ServicePhase(change.service.phase),
            state=change.state(),
            seen=seen,
            is_confirmed=seen is not None and is_confirmed(change.desired(), seen),
            is_waiting=bool(change.service.waits_for) or change.service.awaited_import_id is not None,
            is_unsettled=any(participant.unsettled(change) for participant in participants),
        )
    )


def _apply(change: Change, owner: str, outside: Outside) -> Sequence[Drift]:
    """Apply the desired state to the cluster, and return the drift found there; record and raise a refusal.

    An unreachable cluster is no refusal; observations report it.

    Raises:
        OvertakenError: the owner lost the lease.
    """

    service, desired = change.service, change.desired()

    def check_lease() -> None:
        if not lease.holds(service.pk, owner, outside.clock()):
            raise OvertakenError

    def read_secrets() -> Mapping[str, Mapping[str, str]]:
        # Values have no generation by which the cluster would refuse older ones, and a worker may sleep at any place.
        check_lease()
        return values_of(namespace=service.namespace, refs=refs)

    if outside.clock() - change.now > _SURE:
        check_lease()
    refs = [each for revision in desired.revisions for each in revision.secret_refs]
    try:
        if refs and service.cluster.kind == LOCAL:
            outside.driver.apply_secrets(service.namespace, service.name, read_secrets)
        drift = outside.driver.apply(desired)
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
        service.refusal = refusal


def _note_drift(service: InferenceService, found: Sequence[Drift], now: datetime) -> bool:
    """Record the drift found on the cluster, and return whether it is another one; else nothing is written."""
    before = drifting.stored(service.drift)
    after, lines = drifting.note(before, found, now)
    if after == before:
        return False
    with changing(service.pk, now=now) as change:
        change.service.drift = drifting.to_json(after)
        for line in lines:
            change.event(line.kind, line.message, by_itself=True)
    return True


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
            raise OvertakenError
        row.delete()
    return Outcome.REMOVED
