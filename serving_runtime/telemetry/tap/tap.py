"""Payload tap: takes recorded requests off the event loop and writes them, as events, to a sink on its own thread.

Nothing here delays a response: the loop decides whether a request is recorded, keeps references to its tensors after
the response was sent, and goes on. When the sink is slower than the requests, the queue is bounded and the rest is
dropped and counted.
"""

import logging
import queue
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from serving_runtime.common.request import InferRequest, Outcome
from serving_runtime.shared.sampling import is_sampled
from serving_runtime.telemetry.tap.events import Exchange, event, size_bytes
from serving_runtime.telemetry.tap.share import Share
from serving_runtime.telemetry.tap.sinks import Sink, SinkError

logger = logging.getLogger(__name__)

_ENOUGH_BYTES = 1 << 20
"""Bytes of pending events; a write takes no further ones beyond that."""

_CLOSE_S = 5.0

_FLUSH_S = 1.0
"""How long a sink may hold events back to write them together."""


_Queued = tuple[tuple[Exchange, ...], int]
"""Exchanges that are written together, and their size in bytes."""


@dataclass(slots=True)
class TapCounts:
    """Counts of events by outcome; each is written by one thread only.

    Attributes:
        written: accepted by the sink.
        dropped: not queued, because the queue was full.
        failed: refused by the sink.
    """

    written: int = 0
    dropped: int = 0
    failed: int = 0


class RecordedEvents(StrEnum):
    """Events of a recorded request to write, in the terms of KServe's payload logger."""

    ALL = "all"
    REQUEST = "request"
    RESPONSE = "response"


class Recording:
    """One recorded request; it is written with its first response."""

    __slots__ = ("_answers", "_arrived", "_request", "_request_id", "_tap")

    def __init__(self, tap: "Tap", request: InferRequest, request_id: str) -> None:
        self._tap = tap
        self._request = request
        self._request_id = request_id
        self._arrived = datetime.now(UTC)
        self._answers = 0

    def note(self, outcome: Outcome) -> None:
        """Record a response, after it was sent to the client."""
        self._answers += 1
        answer = Exchange(self._request_id, self._answers, self._request, outcome, datetime.now(UTC))
        if self._answers > 1:
            self._tap.put(answer)
        else:
            self._tap.put(Exchange(self._request_id, 0, self._request, None, self._arrived), answer)


class Tap:
    """Records the requests of a share.

    Args:
        source: of the events, a URI reference that names the server.
        share: of the requests; while it is 0 requests need not pass here at all.
        max_pending_bytes: of tensors that wait for the sink.
        recorded_events: the events of a recorded request that the sink gets.

    Attributes:
        on_change: called after `active` has changed.
    """

    def __init__(
        self,
        sink: Sink,
        *,
        source: str,
        share: Share,
        max_pending_bytes: int,
        recorded_events: RecordedEvents = RecordedEvents.ALL,
    ) -> None:
        self.counts = TapCounts()
        self.on_change: list[Callable[[], None]] = []
        self._sink = sink
        self._source = source
        self._share = share
        self._max_pending_bytes = max_pending_bytes
        self._recorded_events = recorded_events
        self._put_bytes = 0  # written by the event loop only
        self._taken_bytes = 0  # written by the thread only
        self._queue: queue.SimpleQueue[_Queued | None] = queue.SimpleQueue()
        self._is_failing = False
        self._thread = threading.Thread(target=self._work, name="payload-tap", daemon=True)
        self._thread.start()

    @property
    def active(self) -> bool:
        """Return whether any request is recorded."""
        return self._share.now > 0

    def look(self) -> None:
        """Check whether the share was changed from outside."""
        was_active = self.active
        self._share.look()
        if self.active is not was_active:
            for notify in self.on_change:
                notify()

    def recording(self, request: InferRequest) -> "Recording | None":
        """Return the recorder of a request's responses, None where it is not recorded.

        A request without an id gets a random one.
        """
        context = request.context
        request_id = (context.request_id if context is not None else "") or str(uuid.uuid4())
        return Recording(self, request, request_id) if is_sampled(request_id, self._share.now) else None

    def put(self, *exchanges: Exchange) -> None:
        """Queue exchanges to be written together, or drop and count them where the queue is full."""
        if self._recorded_events is not RecordedEvents.ALL:
            exchanges = tuple(
                [
                    each
                    for each in exchanges
                    if (each.outcome is None) is (self._recorded_events is RecordedEvents.REQUEST)
                ]
            )
            if not exchanges:
                return
        size = sum([size_bytes(exchange) for exchange in exchanges])
        if self._put_bytes - self._taken_bytes + size > self._max_pending_bytes:
            self.counts.dropped += len(exchanges)
            return
        self._put_bytes += size
        self._queue.put((exchanges, size))

    def close(self) -> None:
        """Write pending events, for a few seconds at most."""
        self._queue.put(None)
        self._thread.join(_CLOSE_S)
        if self._thread.is_alive():
            logger.warning("payload tap: %d events were not written before the server ended", self._queue.qsize())

    def _work(self) -> None:
        ended = is_kept_back = False
        while not ended:
            try:
                taken = [self._queue.get(timeout=_FLUSH_S if is_kept_back else None)]
            except queue.Empty:
                is_kept_back = False
                self._flush()
                continue
            self._gather(taken)
            ended = taken[-1] is None
            waiting = [item for item in taken if item is not None]
            if waiting:
                self._write([exchange for exchanges, _ in waiting for exchange in exchanges])
                is_kept_back = True
                self._taken_bytes += sum([size for _, size in waiting])
        self._flush()
        self._sink.close()

    def _gather(self, taken: "list[_Queued | None]") -> None:
        """Add pending exchanges, and further ones while the sink gathers; None ends it."""
        until = time.monotonic() + self._sink.gather_s
        held = 0
        while (last := taken[-1]) is not None:
            held += last[1]
            if held >= _ENOUGH_BYTES:
                return
            try:
                taken.append(self._queue.get(timeout=max(0.0, until - time.monotonic())))
            except queue.Empty:
                return

    def _flush(self) -> None:
        try:
            self._sink.flush()
        except SinkError as error:
            self._log_change(failing=True, reason=str(error))

    def _write(self, exchanges: Sequence[Exchange]) -> None:
        try:
            self._sink.write([event(exchange, self._source) for exchange in exchanges])
        except SinkError as error:
            self.counts.written += error.taken
            self.counts.failed += len(exchanges) - error.taken
            self._log_change(failing=True, reason=str(error))
        except Exception as error:  # a payload that cannot be rendered must not end the thread
            self.counts.failed += len(exchanges)
            logger.exception("payload tap: %d events could not be made", len(exchanges), exc_info=error)
        else:
            self.counts.written += len(exchanges)
            self._log_change(failing=False, reason="")

    def _log_change(self, *, failing: bool, reason: str) -> None:
        """Log when the sink begins to refuse and when it accepts events again, not in between."""
        if failing and not self._is_failing:
            logger.warning("payload tap: events are lost until the sink takes them again: %s", reason)
        elif self._is_failing and not failing:
            logger.info("payload tap: the sink takes events again")
        self._is_failing = failing
