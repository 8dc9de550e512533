"""Business logic scripting (BLS): serves models' requests to other models (Triton: business logic scripting).

worker: infer, ready -> serve (the thread that receives) -> the engine's event loop -> answered -> worker
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from serving_runtime.backends.base import Calls
from serving_runtime.backends.python.wire.failures import failure_from
from serving_runtime.common.errors import ServingError, Unavailable
from serving_runtime.common.request import Cancellable, InferRequest, Outcome, Tensor

Answer: TypeAlias = Callable[[dict[str, Any], Sequence[Tensor]], None]
"""Sends a worker a response to its request; never blocks."""


class CallServer:
    """The calls of all workers of one model.

    Attributes:
        calls: the server; None until the model is registered with it.
    """

    def __init__(self) -> None:
        self.calls: Calls | None = None
        self._lock = threading.Lock()
        self._open: dict[Any, dict[int, Cancellable | None]] = {}

    @property
    def under_way(self) -> int:
        """Return the number of the model's pending requests."""
        return sum([len(calls) for calls in list(self._open.values())])

    def serve(self, worker: Any, answer: Answer, message: Mapping[str, Any], tensors: Sequence[Tensor]) -> None:
        """Start a worker's request."""
        call, calls = message["call"], self.calls
        if message["do"] == "ready":
            ready = calls is not None and calls.serves(message["model"], message["version"])
            answer({"call": call, "ready": ready, "final": True}, ())
            return
        if calls is None:
            error = Unavailable("models can be asked once this one is loaded, which is after initialize()")
            answer({"call": call, "error": failure_from(error), "final": True}, ())
            return
        request = InferRequest(
            message["model"],
            message["version"],
            tuple(tensors),
            tuple(message["outputs"]),
            message["id"],
            message["parameters"],
        )
        with self._lock:
            self._open.setdefault(worker, {})[call] = None
        done = partial(self._done, worker, answer, call)
        calls.infer(request, done, partial(self._begun, worker, call), decoupled=message["decoupled"])

    def lost(self, worker: Any) -> None:
        """Cancel the requests of a worker that has ended."""
        with self._lock:
            calls = self._open.pop(worker, {})
        for cancellable in calls.values():
            if cancellable is not None and self.calls is not None:
                self.calls.cancel(cancellable)

    def _begun(self, worker: Any, call: int, cancellable: Cancellable) -> None:
        with self._lock:
            calls = self._open.get(worker)
            if calls is not None:
                if call in calls:
                    calls[call] = cancellable
                return
        cancellable.cancel()

    def _done(self, worker: Any, answer: Answer, call: int, outcome: Outcome) -> None:
        if isinstance(outcome, ServingError):
            message: dict[str, Any] = {"call": call, "error": failure_from(outcome), "final": True}
            outputs: Sequence[Tensor] = ()
        else:
            message = {"call": call, "parameters": dict(outcome.parameters), "final": outcome.final}
            outputs = outcome.outputs
        if message["final"]:
            with self._lock:
                self._open.get(worker, {}).pop(call, None)
        answer(message, outputs)
