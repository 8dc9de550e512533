"""Recordings of a service's traffic: start with a user's consent, end, deletion, retention."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from accounts.services import audit_record
from clusters.services.connection import can_record
from common.errors import Conflict, InvalidInput
from deployments.domain.service_state.desired import Role
from deployments.reconcile import hints
from deployments.reconcile.service_change import changing
from deployments.services.revisions.custom_predictors import refuse_custom
from deployments.services.services import service_named
from events.domain.kinds import Kind
from recordings.models import Recording
from recordings.reconcile import payload_files, payloads
from recordings.selectors.recordings import recording_get

MAX_REQUESTS = 1_000_000
MAX_BYTES = 10 * 2**30
LONGEST = timedelta(days=90)
_LEAST_CONSENT = 10
_PLATFORM = "fairlead"
"""The kind of cluster whose replicas can record."""


@dataclass(frozen=True)
class RecordingOrder:
    """A recording order.

    Attributes:
        consent: the words in which the user takes responsibility for storing clients' payloads.
        share_percent: of the requests, more than 0 up to 100.
        retention: from now on; then the recording ends, and everything of it is deleted.
    """

    consent: str
    share_percent: float = 100.0
    max_requests: int = 10_000
    max_bytes: int = 2**30
    retention: timedelta = timedelta(days=7)

    def check(self) -> None:
        """Raise InvalidInput, naming the field, where the order is invalid."""
        if len(self.consent.strip()) < _LEAST_CONSENT:
            raise InvalidInput(
                "consent says too little; requests hold clients' data, so say in a sentence why they may be kept",
                field="consent",
            )
        if not 0 < self.share_percent <= 100:
            raise InvalidInput(
                f"share_percent is {self.share_percent:g}; it is above 0 and up to 100", field="share_percent"
            )
        if not 1 <= self.max_requests <= MAX_REQUESTS:
            raise InvalidInput(f"max_requests is {self.max_requests}; it is 1 to {MAX_REQUESTS}", field="max_requests")
        if not 1 <= self.max_bytes <= MAX_BYTES:
            raise InvalidInput(f"max_bytes is {self.max_bytes}; it is 1 to {MAX_BYTES}", field="max_bytes")
        if not timedelta(0) < self.retention <= LONGEST:
            raise InvalidInput(f"retention is at most {LONGEST.days} days", field="retention")


@transaction.atomic
def recording_start(*, namespace: str, name: str, order: RecordingOrder, actor: str, now: datetime) -> Recording:
    """Start storing requests of the service with stable's responses.

    Raises:
        NotFound: no such service.
        InvalidInput: the order is invalid.
        Conflict: a recording runs already, the service is being deleted, or its cluster cannot record.
    """
    order.check()
    found = service_named(namespace, name)
    with changing(found.pk, now=now) as change:
        service = change.service
        if service.deleting_at is not None:
            raise Conflict(f"service {service} is being deleted, so nothing of it is recorded")
        if not can_record(service.cluster):
            raise Conflict(
                f"service {service} runs on cluster {service.cluster}, whose file says no controlPlaneUrl, so that its "
                "pods have nowhere to bring what they record; add it first"
            )
        refuse_custom(service, change.revision(Role.STABLE), "gives Fairlead no requests to record")
        running = Recording.objects.filter(service=service, ended_at=None).first()
        if running is not None:
            raise Conflict(f"recording {running.pk} of service {service} runs already; stop it first")
        recording = Recording.objects.create(
            service=service,
            consent=order.consent.strip(),
            share_percent=order.share_percent,
            max_requests=order.max_requests,
            max_bytes=order.max_bytes,
            created_at=now,
            created_by=actor,
            expires_at=now + order.retention,
        )
        service.recorded_percent = order.share_percent
        change.event(
            Kind.RECORDING_STARTED,
            f"{actor} has {order.share_percent:g} % of the requests to {service} recorded as recording {recording.pk}, "
            f"at most {order.max_requests} of them and until {recording.expires_at:%Y-%m-%d %H:%M} UTC",
        )
        audit_record(
            actor=actor,
            action="recording.start",
            target=_target(recording),
            now=now,
            after={
                "share_percent": order.share_percent,
                "max_requests": order.max_requests,
                "max_bytes": order.max_bytes,
                "expires_at": recording.expires_at.isoformat(),
                "consent": recording.consent,
            },
        )
    hints.reconcile_soon(found.pk)
    return recording


@transaction.atomic
def recording_stop(*, namespace: str, name: str, recording_id: int, actor: str, now: datetime) -> Recording:
    """End a running recording; its content stays until it expires. Idempotent.

    Raises:
        NotFound: the service has no such recording.
    """
    recording = recording_get(namespace=namespace, name=name, recording_id=recording_id)
    if recording.ended_at is None:
        with changing(recording.service_id, now=now) as change:
            payloads.end(change, recording.pk, f"{actor} stopped it")
            audit_record(actor=actor, action="recording.stop", target=_target(recording), now=now)
        hints.reconcile_soon(recording.service_id)
    return recording_get(namespace=namespace, name=name, recording_id=recording_id)


@transaction.atomic
def recording_delete(*, namespace: str, name: str, recording_id: int, actor: str, now: datetime) -> None:
    """Delete a recording, also a running one; a worker deletes its file within seconds.

    Raises:
        NotFound: the service has no such recording.
    """
    recording = recording_get(namespace=namespace, name=name, recording_id=recording_id)
    _delete(recording, f"{actor} deleted recording {recording.pk}", actor=actor, now=now)


def recordings_forget(*, now: datetime) -> int:
    """Delete expired recordings, then every file without a recording; return the number of files.

    Called by workers only, which have the files.
    """
    for recording in Recording.objects.select_related("service").filter(expires_at__lte=now):
        with transaction.atomic():
            _delete(recording, f"recording {recording.pk} was deleted, its time is over", actor=_PLATFORM, now=now)
    return payload_files.delete_others(set(Recording.objects.values_list("pk", flat=True)))


def _delete(recording: Recording, message: str, *, actor: str, now: datetime) -> None:
    target = _target(recording)
    with changing(recording.service_id, now=now) as change:
        if recording.ended_at is None:
            payloads.end(change, recording.pk, "it is deleted", by_itself=actor == _PLATFORM)
        change.event(Kind.RECORDING_DELETED, message, by_itself=actor == _PLATFORM)
        Recording.objects.filter(pk=recording.pk).delete()
        audit_record(actor=actor, action="recording.delete", target=target, now=now)


def _target(recording: Recording) -> str:
    service = recording.service
    return f"services/{service.namespace}/{service.name}/recordings/{recording.pk}"
