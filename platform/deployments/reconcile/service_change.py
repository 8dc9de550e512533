"""Unit of work for changes of a service and its related rows: under its row lock, with events and a generation.

Services (people's commands) and the reconciler (consequences of observations) both use `changing`. Whatever they did to
the rows, the end is the same: the generation rises if the desired state changed, `changes` rises, so that decisions on
older rows are detected, and the events get their numbers.

A plan (`service_plan`) is the same change without a lock and without a write: it keeps its writes, to do them later.
"""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import Model, Q
from django.db.models.functions import Now

from common.errors import NotFound
from common.http import request_id
from deployments import mapping
from deployments.domain.phases import Phase
from deployments.domain.rollout import RolloutState
from deployments.domain.rollout.event_messages import Kind, lines_between
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState, desired_of
from deployments.domain.service_state.service_lifecycle import roles_after
from deployments.models import AnalysisRun, InferenceService, Revision, Rollout
from deployments.reconcile.service_counters import count_ends
from events.models import Event
from events.services.delivery import deliveries_queue, of_service
from integrations.clusters.base import Desired

logger = logging.getLogger(__name__)
Write = Callable[[], object]
Message = str | Callable[[], str]
"""Text of an event; a function where it names rows that a plan has not inserted yet."""


@dataclass(frozen=True, slots=True)
class Read:
    """A service as a plan read it.

    Attributes:
        service: a copy of its row; None for a new one.
        newest, going: its newest rollout, and the one in progress.
    """

    service: InferenceService | None
    newest: Rollout | None
    going: Rollout | None


@dataclass
class Change:
    """A service to change in place, with its related rows.

    Attributes:
        revisions: the running ones, and those of the newest rollout, by number.
        newest: its newest rollout, over or not.
        read: what a plan began with; None under the lock.
        kept: the writes of a plan; None under the lock, where they are done at once.
    """

    service: InferenceService
    revisions: list[Revision]
    newest: Rollout | None
    now: datetime
    is_changed: bool = False
    read: Read | None = None
    _events: list[tuple[Event, Message]] = field(default_factory=list)
    kept: list[Write] | None = None

    def write(self, write: Write) -> None:
        """Do a write of the change now; a plan keeps it until it is carried out."""
        if self.kept is None:
            write()
        else:
            self.kept.append(write)

    @property
    def rollout(self) -> Rollout | None:
        """Return the rollout in progress."""
        return self.newest if self.newest is not None and not Phase(self.newest.phase).is_finished else None

    def revision(self, role: Role) -> Revision | None:
        """Return the revision of a role that is unique."""
        return next((revision for revision in self.revisions if revision.role == role), None)

    def event(
        self,
        kind: Kind,
        message: Message,
        *,
        revision: str = "",
        rollout: Rollout | None = None,
        by_itself: bool = False,
    ) -> None:
        """Add an event; an event without a request has no request id."""
        self.is_changed = True
        self.service.event_seq += 1
        event = Event(
            service=self.service,
            seq=self.service.event_seq,
            at=self.now,
            kind=kind,
            revision=revision,
            rollout=rollout,
            request_id="" if by_itself else request_id.current(),
        )
        self._events.append((event, message))

    def move(self, rollout: Rollout, after: RolloutState) -> None:
        """Record a rollout's new state with its consequences: roles, finished analysis runs, events."""
        before = mapping.rollout_state(rollout)
        if after == before:
            return
        self.is_changed = True
        for line in lines_between(before, after, rollout.to_revision.name):
            self.event(line.kind, line.message, revision=rollout.to_revision.name, rollout=rollout)
        if (after.attempt, after.step_index) != (before.attempt, before.step_index) or after.phase.is_finished:
            runs = AnalysisRun.objects.filter(rollout=rollout, finished_at=None)
            if after.attempt == before.attempt and not after.phase.is_finished:
                runs = runs.exclude(step_index=None)  # the background analysis continues with the next step
            self.write(partial(runs.update, finished_at=self.now))
        columns = columns_of(rollout)
        mapping.put_rollout(rollout, after)
        if after.reason.code is not before.reason.code:
            rollout.reason_since = self.now
        # Under the lock callers may have set further columns; a plan may overwrite none that it did not change.
        moved = None if self.kept is None else differing(rollout, columns)
        self.write(partial(rollout.save, update_fields=moved))
        if after.phase is not before.phase:
            self.put_revisions(
                roles_after(
                    (mapping.revision_state(revision) for revision in self.revisions),
                    outcome=after.phase,
                    old=rollout.from_revision.name,
                    new=rollout.to_revision.name,
                    policy=after.policy,
                    now=self.now,
                )
            )

    def put_revisions(self, states: tuple[RevisionState, ...]) -> None:
        """Record the states of the revisions."""
        by_name = {state.name: state for state in states}
        changed = [
            row for row in self.revisions if row.name in by_name and mapping.revision_state(row) != by_name[row.name]
        ]
        # Only one revision may be stable at any time, so the one that leaves the role is written first.
        for row in sorted(changed, key=lambda row: by_name[row.name].role in (Role.STABLE, Role.CANARY)):
            if row.stopped_at is None and by_name[row.name].stopped_at is not None:
                self.event(Kind.REVISION_STOPPED, f"{row.name} runs no more", revision=row.name)
            mapping.put_revision(row, by_name[row.name])
            self.write(partial(row.save, update_fields=["role", "retire_at", "stopped_at"]))
            self.is_changed = True

    def state(self) -> ServiceState:
        """Return the service as a domain value."""
        return mapping.service_state(self.service, self.revisions, self.rollout)

    def desired(self) -> Desired:
        """Return the cluster's desired state."""
        return desired_of(self.state(), self.service.generation)

    def write_events(self) -> None:
        """Insert the added events; `changing` and `carry_out` call it."""
        added, self._events = self._events, []
        events = [event for event, _ in added]
        for event, message in added:
            event.message = message if isinstance(message, str) else message()
        Event.objects.bulk_create(events)
        if events:
            count_ends(self.service, [Kind(event.kind) for event in events])
            deliveries_queue(of_service(self.service.namespace, self.service.name, events))
            transaction.on_commit(partial(_log, str(self.service), events))


@contextmanager
def changing(service_id: int, *, now: datetime) -> Iterator[Change]:
    """Yield the service under its row lock to the caller's block, and record what the block changed.

    Raises:
        NotFound: the service does not exist any more.
    """
    with transaction.atomic():
        change = load(service_id, now=now, lock=True)
        desired, fields = change.desired(), fields_of(change.service)
        yield change
        if number(change, desired, fields):
            change.service.save()
            change.write_events()


def number(change: Change, desired: Desired, columns: dict[str, object]) -> bool:
    """Number what was changed of a service; return whether anything was.

    Args:
        desired, columns: as they were before.
    """
    service = change.service
    mapping.put_wait(service, change.now)
    mapping.put_searched(service)
    if change.desired() != desired:
        service.generation += 1
    if not change.is_changed and fields_of(service) == columns:
        return False
    service.changes += 1
    service.changed_at = Now()
    service.request_id = request_id.current()
    return True


def load(service_id: int, *, now: datetime, lock: bool = False) -> Change:
    """Return a service with its revisions and its rollout in progress; raises NotFound."""
    services = InferenceService.objects.select_related("cluster", "model_version__model")
    if lock:
        services = services.select_for_update(of=("self",))
    gone = NotFound(f"there is no service with id {service_id}")
    try:
        service = services.get(pk=service_id)
    except InferenceService.DoesNotExist:
        raise gone from None
    newest = Rollout.objects.filter(service=service).order_by("-id").first()
    ends = () if newest is None else (newest.from_revision_id, newest.to_revision_id)
    # Joined and ordered here: a SQL join of a hundred columns costs the database's client more than the rows do.
    needed = Revision.objects.filter(Q(stopped_at=None) | Q(pk__in=ends), service=service)
    found = {row.pk: row for row in needed.select_related("model_version")}
    if newest is not None:
        if not found.keys() >= set(ends):
            raise gone  # deleted since the first query
        newest.from_revision, newest.to_revision = (found[key] for key in ends)
    revisions = [row for row in found.values() if row.stopped_at is None or row.pk in ends[1:]]
    return Change(service, sorted(revisions, key=lambda row: row.number), newest, now)


def _log(service: str, events: list[Event]) -> None:
    for event in events:
        logger.info("%s: %s: %s", service, event.kind, event.message, extra={"request_id": event.request_id or "-"})


def fields_of(service: InferenceService) -> dict[str, object]:
    """Return the service's columns as they are now; JSON columns are replaced, never changed in place.

    The times of observations are no change.
    """
    left_out = {"changed_at", "seen_at", "settled", "tap_cursor", "ticked_at", "traffic_at"}
    return {name: value for name, value in columns_of(service).items() if name not in left_out}


def columns_of(row: Model) -> dict[str, object]:
    """Return the values of a row's columns."""
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def differing(row: Model, before: dict[str, object]) -> list[str]:
    """Return the names of the columns that are not as before."""
    return [name for name, value in columns_of(row).items() if value is not before[name] and value != before[name]]
