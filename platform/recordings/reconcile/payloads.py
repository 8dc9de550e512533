"""Payload collection: a turn of the reconciler reads a service's taps, and adds to the running recording.

`take` and `keep` access the cluster and the disk, with no transaction open; `note` writes the result together with the
cursor, in the turn's transaction. After a failure in between the next turn repeats it: the cursor is the old one, and
the file is truncated to the row's length.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from common.errors import Unavailable
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService
from deployments.reconcile.service_change import Change
from events.domain.kinds import Kind
from integrations.clusters.base import ClusterDriver, Exchange
from recordings.domain.sampling import is_sampled
from recordings.models import Recording
from recordings.reconcile import payload_files

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Taken:
    """Payloads since the last turn; `cursor` is after them, `problem` says why the taps could not be read."""

    exchanges: Sequence[Exchange] = ()
    cursor: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """A recording with this turn's addition, not saved yet."""

    recording: Recording
    requests: int
    bytes: int

    @property
    def end_reason(self) -> str:
        """Return why the recording is complete; empty while it is not."""
        if self.requests >= self.recording.max_requests:
            return f"it has the {self.recording.max_requests} requests that were asked for"
        if self.bytes >= self.recording.max_bytes:
            return f"it has {self.bytes} bytes, and {self.recording.max_bytes} were asked for"
        return ""


def take(read: Change, driver: ClusterDriver) -> Taken:
    """Return the payloads of the service's taps since the last turn; empty where the cluster cannot be read."""
    service = read.service
    is_tapped = any(revision.tap is not None for revision in read.desired().revisions)
    if not is_tapped and not service.tap_cursor:
        return Taken()
    try:
        found, cursor = driver.exchanges(service.namespace, service.name, service.tap_cursor)
    except Unavailable as error:
        logger.warning("%s: what was recorded is left for the next turn: %s", service, error)
        return Taken(cursor=service.tap_cursor, problem=error.message)
    return Taken(found, cursor if found or is_tapped else "")


def keep(read: Change, taken: Taken) -> Kept | None:
    """Add payloads to the file of the service's running recording; None without one, or without payloads for it."""
    stable = read.revision(Role.STABLE)
    if not read.service.recorded_percent or stable is None:
        return None
    recording = Recording.objects.filter(service=read.service, ended_at=None).first()
    if recording is None:
        return None
    wanted = [each for each in taken.exchanges if _belongs(each, recording, stable.name)]
    wanted = wanted[: recording.max_requests - recording.requests]
    if not wanted:
        return None
    try:
        length = payload_files.append(recording.pk, wanted, at=recording.bytes)
    except Unavailable as error:
        logger.error("%s: %s requests are not kept: %s", read.service, len(wanted), error)
        return None
    return Kept(recording, recording.requests + len(wanted), length)


def note(change: Change, taken: Taken, kept: Kept | None) -> None:
    """Record the collected payloads, in the turn's transaction."""
    service = change.service
    if taken.cursor != service.tap_cursor:
        service.tap_cursor = taken.cursor
        InferenceService.objects.filter(pk=service.pk).update(tap_cursor=taken.cursor)
    if kept is None:
        return
    running = Recording.objects.filter(pk=kept.recording.pk, ended_at=None)
    if running.update(requests=kept.requests, bytes=kept.bytes) and kept.end_reason:
        end(change, kept.recording.pk, kept.end_reason, by_itself=True)


def end(change: Change, recording_id: int, reason: str, *, by_itself: bool = False) -> None:
    """End the service's running recording; the next desired state removes the taps of its replicas."""
    Recording.objects.filter(pk=recording_id, ended_at=None).update(ended_at=change.now, end_reason=reason)
    change.service.recorded_percent = 0
    change.event(Kind.RECORDING_ENDED, f"recording {recording_id} ended: {reason}", by_itself=by_itself)


def _belongs(exchange: Exchange, recording: Recording, stable: str) -> bool:
    began: datetime = recording.created_at
    return (
        exchange.revision == stable
        and exchange.at >= began.timestamp()
        and is_sampled(exchange.request_id, recording.share_percent)
    )
