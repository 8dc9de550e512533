"""Unit of work for changes of a service and its related rows: under its row lock, with events and a generation.

Services (people's commands) and the reconciler (consequences of observations) both use `changing`. Whatever they did to
the rows, the end is the same: the generation rises if the desired state changed, `changes` rises, so that decisions on
older rows are detected, and the events get their numbers.

A change parses the policy of its rollout, and each revision's part of the service file, once.

A plan (`service_plan`) is the same change without a lock and without a write: it keeps its writes, to do them later.
"""

import logging
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from operator import attrgetter

from django.db import transaction
from django.db.models import Model, Q
from django.db.models.functions import Now

from common.errors import NotFound
from common.http import request_id
from deployments import mapping
from deployments.domain.autoscaling.model_copies import copies_of
from deployments.domain.phases import Phase
from deployments.domain.policy import DIRECT, Policy, stored_policy
from deployments.domain.rollout import RolloutState
from deployments.domain.rollout.event_messages import lines_between
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState, desired_of
from deployments.domain.service_state.service_lifecycle import roles_after
from deployments.models import AnalysisRun, InferenceService, Revision, Rollout
from deployments.reconcile.service_counters import count_ends, count_reason
from events.domain.kinds import Kind
from events.models import Event
from events.services.delivery import deliveries_queue, of_service
from integrations.clusters.base import Desired

logger = logging.getLogger(__name__)
_OBSERVED = frozenset({"seen_at", "tap_cursor", "traffic_at"})
"""Columns of observations: new values are no change of the service."""
_WRITTEN = {field.attname for field in InferenceService._meta.concrete_fields} - {
    "changed_at",
    "lease_expires_at",
    "lease_owner",
    "settled",
    "ticked_at",
}
"""Columns that changes write; the others have writers of their own (`lease`, `schedule`)."""
_STATE_COLUMNS = attrgetter(
    *sorted({field.attname for field in Revision._meta.concrete_fields} - {"last_failure", "load"})
)
"""Columns of a revision that its state may depend on; all but what each tick may note, of which copies are a part."""
_OF_A_MOVE = {field.attname for field in Rollout._meta.concrete_fields if not field.primary_key} - {
    "contract",
    "created_by",
    "from_revision_id",
    "policy_document",
    "policy_name",
    "policy_version",
    "service_id",
    "started_at",
    "to_revision_id",
}
"""Columns that a rollout's move may write; the others stay as of its start."""
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
    kept: list[Write] | None = None
    _events: list[tuple[Event, Message]] = field(default_factory=list)
    _policies: dict[int, tuple[object, Policy]] = field(default_factory=dict)
    _states: dict[int, tuple[object, RevisionState]] = field(default_factory=dict)
    _desired: Desired | None = None
    _desired_of: tuple[ServiceState, int] | None = None

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
        before = self.rollout_state(rollout)
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
        # A plan may overwrite no column that it did not change.
        moved = _OF_A_MOVE if self.kept is None else differing(rollout, columns)
        self.write(partial(rollout.save, update_fields=moved))
        if after.phase is not before.phase:
            if after.phase.is_finished:
                self.write(partial(count_reason, after.phase, after.reason.code))
            self.put_revisions(
                roles_after(
                    map(self.revision_state, self.revisions),
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
            row for row in self.revisions if row.name in by_name and self.revision_state(row) != by_name[row.name]
        ]
        # Only one revision may be stable at any time, so the one that leaves the role is written first.
        for row in sorted(changed, key=lambda row: by_name[row.name].role in (Role.STABLE, Role.CANARY)):
            if row.stopped_at is None and by_name[row.name].stopped_at is not None:
                self.event(Kind.REVISION_STOPPED, f"{row.name} runs no more", revision=row.name)
            mapping.put_revision(row, by_name[row.name])
            self.write(partial(row.save, update_fields=["role", "retire_at", "stopped_at"]))
            self.is_changed = True

    def rollout_state(self, row: Rollout) -> RolloutState:
        """Return a rollout's state as recorded now; its policy is parsed once."""
        document, policy = self._policies.get(row.pk, (None, DIRECT))
        if document is not row.policy_document:
            policy = stored_policy(row.policy_document)
            self._policies[row.pk] = row.policy_document, policy
        return mapping.rollout_state(row, policy)

    def revision_state(self, row: Revision) -> RevisionState:
        """Return a revision as recorded now; its part of the service file is parsed again only after a change."""
        before, state = self._states.get(row.pk, (None, None))
        found = _STATE_COLUMNS(row), copies_of(row.load)
        if state is None or before != found:
            state = mapping.revision_state(row)
            self._states[row.pk] = found, state
        return state

    def state(self) -> ServiceState:
        """Return the service as recorded now."""
        rollout = None if self.rollout is None else self.rollout_state(self.rollout)
        return mapping.service_state(self.service, map(self.revision_state, self.revisions), rollout)

    def desired(self) -> Desired:
        """Return the cluster's desired state."""
        of = (self.state(), self.service.generation)
        if self._desired is None or of != self._desired_of:
            self._desired_of, self._desired = of, desired_of(*of)
        return self._desired

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


class OvertakenError(Exception):
    """The service was changed since it was read, or another reconciler has it; rolls the transaction back."""


@contextmanager
def changing(service_id: int, *, now: datetime) -> Iterator[Change]:
    """Yield the service under its row lock to the caller's block, and record what the block changed.

    Raises:
        NotFound: the service does not exist any more.
    """
    with transaction.atomic():
        change = load(service_id, now=now, lock=True)
        desired, before = change.desired(), columns_of_change(change.service)
        yield change
        _write(change, number(change, desired, before))


@contextmanager
def changing_as_read(read: Change, *, owner: str) -> Iterator[Change]:
    """Yield what was read before to the caller's block, under the service's row lock, and record what it changed.

    Every change of a service and its related rows raises `changes` under that lock, so rows with the same number are as
    they were read; what the holder of the lease records without it no one else does.

    Raises:
        NotFound: the service does not exist any more.
        OvertakenError: it was changed since it was read, or `owner` lost the lease.
    """
    with transaction.atomic():
        rows = InferenceService.objects.select_for_update().filter(pk=read.service.pk)
        now = rows.values_list("changes", "lease_owner").first()
        if now is None:
            raise _gone(read.service.pk)
        if now != (read.service.changes, owner):
            raise OvertakenError
        desired, before = read.desired(), columns_of_change(read.service)
        yield read
        _write(read, number(read, desired, before))


def _write(change: Change, changed: Collection[str]) -> None:
    """Write the changed columns of the service, and the events of a numbered change."""
    if changed:
        change.service.save(update_fields=changed)
    if "changes" in changed:
        change.write_events()


def number(change: Change, desired: Desired, before: dict[str, object]) -> set[str]:
    """Number what was changed of a service; return the columns to write, none if nothing changed.

    Args:
        desired, before: the desired state and `columns_of_change` as they were before.
    """
    service = change.service
    mapping.put_wait(service, change.now)
    mapping.put_searched(service)
    if change.desired() != desired:
        service.generation += 1
    changed = {name for name, value in columns_of_change(service).items() if value != before[name]}
    if change.is_changed or not changed <= _OBSERVED:
        service.changes += 1
        service.changed_at = Now()
        service.request_id = request_id.current()
        changed |= {"changes", "changed_at", "request_id"}
    return changed


def load(service_id: int, *, now: datetime, lock: bool = False) -> Change:
    """Return a service with its revisions and its rollout in progress; raises NotFound."""
    services = InferenceService.objects.all()
    if lock:
        services = services.select_related("cluster", "model_version__model").select_for_update(of=("self",))
    try:
        service = services.get(pk=service_id)
    except InferenceService.DoesNotExist:
        raise _gone(service_id) from None
    newest = Rollout.objects.filter(service=service).order_by("-id").first()
    ends = () if newest is None else (newest.from_revision_id, newest.to_revision_id)
    # Joined and ordered here: a SQL join of a hundred columns costs the database's client more than the rows do.
    needed = Revision.objects.filter(Q(stopped_at=None) | Q(pk__in=ends), service=service)
    found = {row.pk: row for row in needed.select_related("model_version__model")}
    if newest is not None:
        if not found.keys() >= set(ends):
            raise _gone(service_id)  # deleted since the first query
        newest.service = service
        newest.from_revision, newest.to_revision = (found[key] for key in ends)
    revisions = [row for row in found.values() if row.stopped_at is None or row.pk in ends[1:]]
    for row in found.values():
        if not lock and row.model_version_id == service.model_version_id:
            service.model_version = row.model_version
    return Change(service, sorted(revisions, key=lambda row: row.number), newest, now)


def _log(service: str, events: list[Event]) -> None:
    for event in events:
        logger.info("%s: %s: %s", service, event.kind, event.message, extra={"request_id": event.request_id or "-"})


def _gone(service_id: int) -> NotFound:
    return NotFound(f"there is no service with id {service_id}")


def columns_of(row: Model) -> dict[str, object]:
    """Return the values of a row's columns; JSON columns are replaced, never changed in place."""
    return {field.attname: getattr(row, field.attname) for field in row._meta.concrete_fields}


def differing(row: Model, before: dict[str, object]) -> list[str]:
    """Return the names of the columns that are not as before."""
    return [name for name, value in columns_of(row).items() if value is not before[name] and value != before[name]]


def columns_of_change(service: InferenceService) -> dict[str, object]:
    """Return the columns of a service that changes write, as they are now."""
    return {name: value for name, value in service.__dict__.items() if name in _WRITTEN}
