"""Recordings as a participant of the reconciler: adds to the running recording what taps recorded since the last turn.

The file is written with no transaction open, and its length in the turn's transaction, together with the taps' cursor.
After a failure in between the next turn repeats it: the cursor is the old one, and the file is truncated to the row's
length.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

from common.errors import Unavailable
from deployments.domain.service_state.desired import Role
from deployments.reconcile.participants.taps import TAPS
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from events.domain.kinds import Kind
from integrations.clusters.base import Exchange
from recordings.models import Recording
from recordings.reconcile import payload_files
from serving_runtime.shared.sampling import is_sampled

logger = logging.getLogger(__name__)


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
            return f"it reached its limit of {self.recording.max_requests} requests"
        if self.bytes >= self.recording.max_bytes:
            return f"it has {self.bytes} bytes, and its limit is {self.recording.max_bytes}"
        return ""


class Recordings(Participant[Kept | None]):
    """Keeps the payloads that a service's taps recorded."""

    def collect(self, turn: Turn) -> Kept | None:
        """Add payloads to the file of the running recording; None without one, or without payloads for it."""
        stable = turn.read.revision(Role.STABLE)
        if not turn.service.recorded_percent or stable is None:
            return None
        recording = Recording.objects.filter(service=turn.service, ended_at=None).first()
        if recording is None:
            return None
        wanted = [each for each in turn.found(TAPS).exchanges if _belongs(each, recording, stable.name)]
        wanted = wanted[: recording.max_requests - recording.requests]
        if not wanted:
            return None
        try:
            length = payload_files.append(recording.pk, wanted, at=recording.bytes)
        except Unavailable as error:
            logger.error("%s: %s requests are not kept: %s", turn.service, len(wanted), error)
            return None
        return Kept(recording, recording.requests + len(wanted), length)

    def record(self, change: Change, found: Kept | None) -> None:
        """Record the length of the file, and end a recording that is complete."""
        if found is None:
            return
        running = Recording.objects.filter(pk=found.recording.pk, ended_at=None)
        if running.update(requests=found.requests, bytes=found.bytes) and found.end_reason:
            end(change, found.recording.pk, found.end_reason, by_itself=True)

    def unsettled(self, change: Change) -> bool:
        """Return whether requests are recorded."""
        return bool(change.service.recorded_percent)


RECORDINGS = Recordings()


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
        and is_sampled(exchange.request_id, recording.share_percent / 100)
    )
