"""Unit of work for a repartition: changes under a row lock, with one cluster event per phase.

Both users' commands (`services.repartitions`) and observed progress (`gpus.reconcile`) go through
`repartition_changing`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction

from clusters.models import Cluster
from common.errors import NotFound
from common.http import request_id
from events.domain.kinds import Kind
from events.models import Event
from events.services.delivery import deliveries_queue, of_cluster
from gpus.models import Repartition
from placement.mig.layouts import Layout
from placement.repartition.machine import Phase, State
from placement.repartition.proposal import Repartition as Plan

_REPORTED = {
    Phase.DECLINED: Kind.REPARTITION_DECLINED,
    Phase.OUTDATED: Kind.REPARTITION_OUTDATED,
    Phase.DRAINING: Kind.REPARTITION_APPROVED,
    Phase.CUTTING: Kind.REPARTITION_CUTTING,
    Phase.REVERTING: Kind.REPARTITION_REVERTING,
    Phase.DONE: Kind.REPARTITION_DONE,
    Phase.ABORTED: Kind.REPARTITION_ABORTED,
}
_LEAVES_NOTHING = (Phase.DECLINED, Phase.OUTDATED)
"""Phases after which the node is unchanged."""


@dataclass
class Change:
    """A repartition to be changed in place."""

    row: Repartition
    now: datetime

    def move(self, after: State, *, reported: str = "", by_itself: bool = False) -> None:
        """Record a new state, with an event where its phase is new.

        Args:
            reported: the event's text; by default the state's own message.
            by_itself: no user's request caused it.
        """
        row, before = self.row, state_of(self.row)
        row.phase, row.since, row.message, row.written_at = after.phase, after.since, after.message, after.written_at
        if after.phase in _LEAVES_NOTHING:
            row.settled_at = self.now
        if after.phase is not before.phase:
            # Every user may read a cluster's events, and the message may name pods of any namespace.
            reported = (
                reported or f"repartition {row.pk} of node {row.node} is {after.phase}; administrators see why there"
            )
            event_add(row.cluster_id, _REPORTED[after.phase], reported, self.now, by_itself=by_itself)


@contextmanager
def repartition_changing(repartition_id: int, *, now: datetime) -> Iterator[Change]:
    """Lock a repartition's row for the caller's block, and save its changes.

    Raises:
        NotFound: the repartition no longer exists.
    """
    with transaction.atomic():
        rows = Repartition.objects.select_related("cluster").select_for_update(of=("self",))
        row = rows.filter(pk=repartition_id).first()
        if row is None:
            raise NotFound(f"there is no repartition {repartition_id}")
        yield Change(row, now)
        row.save()


def event_add(cluster_id: int, kind: Kind, message: str, now: datetime, *, by_itself: bool = False) -> None:
    """Add an event of the cluster; in the transaction of the change."""
    cluster = Cluster.objects.select_for_update().get(pk=cluster_id)
    cluster.event_seq += 1
    cluster.save(update_fields=["event_seq"])
    event = Event.objects.create(
        cluster=cluster,
        seq=cluster.event_seq,
        at=now,
        kind=kind,
        message=message,
        request_id="" if by_itself else request_id.current(),
    )
    deliveries_queue(of_cluster(cluster.name, [event]))


def state_of(row: Repartition) -> State:
    """Return the state machine's state from a row."""
    return State(Phase(row.phase), row.since, row.config, row.config_before, row.message, row.written_at)


def plan_of(row: Repartition) -> Plan:
    """Return the plan from a row."""
    before, after = _cut(row.before), _cut(row.after)
    return Plan(row.node, row.product, before, after, tuple(row.leaving), row.served, row.why)


def cut_json(cut: tuple[Layout, ...]) -> list[list[list[object]]]:
    """Return the MIG layout of a node from its stored form."""
    return [[[profile, count] for profile, count in layout] for layout in cut]


def _cut(stored: list[list[list[object]]]) -> tuple[Layout, ...]:
    return tuple(tuple((str(profile), int(str(count))) for profile, count in layout) for layout in stored)
