"""Unit of work for changes of a service and its related rows: under its row lock, with events and a generation.

Services (people's commands) and the reconciler (consequences of observations) both use `changing`. Whatever they did to
the rows, the end is the same: the generation rises if the desired state changed, `changes` rises, so that decisions on
older rows are detected, and the events get their numbers.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from common.errors import NotFound
from common.http import request_id
from deployments import mapping
from deployments.domain.phases import Phase
from deployments.domain.rollout import RolloutState
from deployments.domain.rollout.event_messages import lines_between
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState, desired_of
from deployments.domain.service_state.service_lifecycle import roles_after
from deployments.models import AnalysisRun, InferenceService, Revision, Rollout
from deployments.reconcile.service_counters import count_ends
from events.domain.kinds import Kind
from events.models import Event
from events.services.delivery import deliveries_queue, of_service
from integrations.clusters.base import Desired

logger = logging.getLogger(__name__)


@dataclass
class Change:
    """A service to change in place, with its related rows.

    Attributes:
        revisions: the running ones, and those of the newest rollout, by number.
        newest: its newest rollout, over or not.
    """

    service: InferenceService
    revisions: list[Revision]
    newest: Rollout | None
    now: datetime
    is_changed: bool = False
    _events: list[Event] = field(default_factory=list)

    @property
    def rollout(self) -> Rollout | None:
        """Return the rollout in progress."""
        return self.newest if self.newest is not None and not Phase(self.newest.phase).is_finished else None

    def revision(self, role: Role) -> Revision | None:
        """Return the revision of a role that is unique."""
        return next((revision for revision in self.revisions if revision.role == role), None)

    def event(
        self, kind: Kind, message: str, *, revision: str = "", rollout: Rollout | None = None, by_itself: bool = False
    ) -> None:
        """Add an event; an event without a request has no request id."""
        self.is_changed = True
        self.service.event_seq += 1
        self._events.append(
            Event(
                service=self.service,
                seq=self.service.event_seq,
                at=self.now,
                kind=kind,
                message=message,
                revision=revision,
                rollout=rollout,
                request_id="" if by_itself else request_id.current(),
            )
        )

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
            runs.update(finished_at=self.now)
        mapping.put_rollout(rollout, after)
        if after.reason.code is not before.reason.code:
            rollout.reason_since = self.now
        rollout.save()
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
            row.save(update_fields=["role", "retire_at", "stopped_at"])
            self.is_changed = True

    def state(self) -> ServiceState:
        """Return the service as a domain value."""
        return mapping.service_state(self.service, self.revisions, self.rollout)

    def desired(self) -> Desired:
        """Return the cluster's desired state."""
        return desired_of(self.state(), self.service.generation)

    def write_events(self) -> None:
        """Insert the added events; `changing` calls it."""
        events, self._events = self._events, []
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
        desired, fields = change.desired(), _fields(change.service)
        yield change
        mapping.put_wait(change.service, change.now)
        mapping.put_searched(change.service)
        if change.desired() != desired:
            change.service.generation += 1
        if change.is_changed or _fields(change.service) != fields:
            change.service.changes += 1
            change.service.changed_at = Now()
            change.service.request_id = request_id.current()
            change.service.save()
            change.write_events()


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


def _fields(service: InferenceService) -> dict[str, object]:
    """Return the service's columns as they are now; JSON columns are replaced, never changed in place.

    The times of observations are no change.
    """
    names = {field.attname for field in service._meta.concrete_fields} - {
        "changed_at",
        "seen_at",
        "settled",
        "tap_cursor",
        "ticked_at",
        "traffic_at",
    }
    return {name: getattr(service, name) for name in names}
