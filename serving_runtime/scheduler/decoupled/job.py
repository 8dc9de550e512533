"""Decoupled request: any number of responses, with back-pressure from slow clients, and cancellation.

Connects two threads. The model's thread calls `Sender`; the event loop passes responses to the client's side, which
signals by `pause` and `resume` whether it can take more. A model is at most `WINDOW` responses ahead of the client.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from serving_runtime.common.datatypes import ABSENT, Array
from serving_runtime.common.errors import BackendError, Cancelled
from serving_runtime.common.request import InferRequest
from serving_runtime.config.signature import TensorSpec
from serving_runtime.scheduler.job import Job, OnResult

WINDOW = 4
_NO_REQUEST = InferRequest("", "", ())

OnResponse: TypeAlias = Callable[["StreamJob", list[Array], int, int], None]
"""Called on the event loop with one response, and the nanoseconds to compute it and to pass it on."""


class StreamJob(Job):
    """A job whose `on_result` is called once per response, and at the end with an empty list or an error.

    Attributes:
        cancelled: the client has gone.
        request: as the client sent it, for the model.
        sent, sent_ns: how many responses the event loop has passed on, and the time of the last one.
    """

    __slots__ = ("_credit", "_notify", "_owed", "_paused", "cancelled", "request", "sent", "sent_ns")

    decoupled = True

    def __init__(
        self, arrays: Sequence[Array], rows: int, shape_key: Hashable, on_result: OnResult, arrived_ns: int
    ) -> None:
        super().__init__(arrays, rows, shape_key, on_result, arrived_ns)
        self.cancelled = False
        self.request = _NO_REQUEST
        self._notify: Callable[[], None] | None = None
        self.sent = 0
        self.sent_ns = arrived_ns
        self._credit = threading.Semaphore(WINDOW)
        self._owed = 0
        self._paused = False

    def cancel(self) -> None:
        """Take the job out of its queue, or stop the model: its next `send` raises Cancelled."""
        self.cancelled = True
        if self._notify is not None:
            self._notify()
        self.resume()
        self._credit.release()  # wakes a waiting send
        super().cancel()

    def when_cancelled(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        if self.cancelled:
            notify()

    def pause(self) -> None:
        self._paused = not self.cancelled

    def resume(self) -> None:
        self._paused = False
        if self._owed:
            self._credit.release(self._owed)
            self._owed = 0

    def taken(self) -> None:
        """Let the model make another response in place of one that was passed on."""
        if self._paused:
            self._owed += 1
        else:
            self._credit.release()

    def wait_for_room(self) -> None:
        """Block until a response may be made; called in the model's thread. Raises Cancelled."""
        self._credit.acquire()
        if self.cancelled:
            raise Cancelled("the request was cancelled")


class Sender:
    """The `send` argument of a model's `stream` (backends.base.Send)."""

    def __init__(
        self,
        job: StreamJob,
        outputs: Sequence[TensorSpec],
        loop: asyncio.AbstractEventLoop,
        on_response: OnResponse,
    ) -> None:
        self._job = job
        self._outputs = outputs
        self._loop = loop
        self._on_response = on_response
        self._last_ns = time.monotonic_ns()

    @property
    def cancelled(self) -> bool:
        return self._job.cancelled

    @property
    def id(self) -> str:
        return self._job.request.id

    @property
    def outputs(self) -> Sequence[str]:
        return self._job.request.outputs

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self._job.request.parameters

    def when_cancelled(self, notify: Callable[[], None]) -> None:
        self._job.when_cancelled(notify)

    def __call__(self, outputs: Sequence[Array]) -> None:
        made_ns = time.monotonic_ns()
        response = checked(outputs, self._outputs)
        self._job.wait_for_room()
        now_ns = time.monotonic_ns()
        times = made_ns - self._last_ns, now_ns - made_ns
        try:
            self._loop.call_soon_threadsafe(self._on_response, self._job, response, *times)
        except RuntimeError as error:  # the loop is closed: the server has stopped waiting for this request
            raise Cancelled("the server has stopped") from error
        self._last_ns = now_ns


def checked(outputs: Sequence[Array], specs: Sequence[TensorSpec]) -> list[Array]:
    """Return a response's arrays; raises BackendError where they do not match the model's declared outputs."""
    if len(outputs) != len(specs):
        raise BackendError(f"the model sent {len(outputs)} outputs; its signature has {len(specs)}")
    for spec, array in zip(specs, outputs, strict=True):
        if array is not ABSENT and array.dtype != spec.datatype.dtype:
            raise BackendError(f"the model sent output '{spec.name}' as {array.dtype}, not {spec.datatype.name}")
    return list(outputs) if type(outputs) in (list, tuple) else cast("list[Array]", outputs)
