"""Labels of the demo's traffic: the right digit of each answered image, sent to the control plane seconds later.

A thread of its own posts what is due in batches. A batch that fails stays and is sent again, which changes nothing
about labels that had arrived. The queue is bounded: while it is full, further labels are left out and counted.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from math import inf
from pathlib import Path

from fairlead_cli.client import Client, Json, path
from fairlead_cli.errors import CliError
from fairlead_cli.up.home import write_atomic

SCORED_OUTPUT = "probabilities"
"""Output of the demo's models whose top class is scored."""

_DELAY_S, _EVERY_S = 2.0, 1.0
_MOST_WAITING, _MOST_AT_ONCE = 20_000, 2_000


@dataclass(slots=True)
class LabelCounts:
    """Counts of labels.

    Attributes:
        sent: that the control plane took.
        unsent: left out because the queue was full, or still waiting at the end.
        failures: of batches; `message` is the last one's.
    """

    sent: int = 0
    unsent: int = 0
    failures: int = 0
    message: str = ""

    def write(self, file: Path) -> None:
        """Write the counts for `read_counts`."""
        write_atomic(file, json.dumps(asdict(self)) + "\n")


def read_counts(file: Path) -> LabelCounts:
    """Return what the traffic process counted."""
    return LabelCounts(**json.loads(file.read_text(encoding="utf-8")))


def feedback_path(namespace: str, service: str) -> str:
    """Return the API path of a service's feedback."""
    return f"{path('services', namespace, service)}/feedback"


class LabelSender:
    """Sends labels to the feedback of a service until it is closed.

    Args:
        delay_s: from a label's `add` until it is sent.
        most_waiting: bound of the queue.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        service: str,
        *,
        delay_s: float = _DELAY_S,
        every_s: float = _EVERY_S,
        most_waiting: int = _MOST_WAITING,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.counts = LabelCounts()
        self._client, self._path = client, feedback_path(namespace, service)
        self._delay_s, self._every_s, self._most_waiting, self._clock = delay_s, every_s, most_waiting, clock
        # Any thread appends; only the one that sends removes.
        self._waiting: deque[tuple[float, Json]] = deque()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="labels")

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def add(self, request_id: str, digit: int) -> None:
        """Queue the right answer to a request."""
        with self._lock:
            if len(self._waiting) >= self._most_waiting:
                self.counts.unsent += 1
            else:
                label = {"request_id": request_id, "value": digit}
                self._waiting.append((self._clock() + self._delay_s, label))

    def close(self) -> LabelCounts:
        """Send what waits without further delay and end; return the final counts."""
        self._closing.set()
        self._thread.join()
        self.counts.unsent += len(self._waiting)
        return self.counts

    def _work(self) -> None:
        while not self._closing.wait(self._every_s):
            self._send_due(self._clock())
        self._send_due(inf)

    def _send_due(self, now: float) -> None:
        """Send all labels due by `now`, up to the first failure."""
        while batch := self._due(now):
            try:
                self._client.post(self._path, {"labels": batch})
            except CliError as error:
                self.counts.failures += 1
                self.counts.message = str(error)
                return
            with self._lock:
                for _ in batch:
                    self._waiting.popleft()
            self.counts.sent += len(batch)

    def _due(self, now: float) -> list[Json]:
        with self._lock:
            return [label for due_at, label in islice(self._waiting, _MOST_AT_ONCE) if due_at <= now]
