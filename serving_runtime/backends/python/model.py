"""Loaded Python model: sends requests to its worker processes, and converts their responses to arrays."""

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

from serving_runtime.backends.base import Answer, Asked, Calls, Explanation, Outputs, Send
from serving_runtime.backends.python.calls import CallServer
from serving_runtime.backends.python.pool import Pool
from serving_runtime.backends.python.process import Asking, Response, WorkerProcess
from serving_runtime.common.datatypes import ABSENT, Array
from serving_runtime.common.errors import BackendError, Cancelled, ServingError
from serving_runtime.common.request import NO_PARAMETERS, Tensor
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.telemetry.metrics.custom_metrics import OWN

A = TypeVar("A")

_NOTES = {False: "", True: ", the first for the rows of the batch"}
"""Suffix of a shape of the config, by whether it has a batch dimension."""


class RemotePythonModel:
    """One version of a model, in as many processes as it has instances.

    Args:
        batched: whether the first dimension of all tensors is that of the batch.
    """

    opsets: dict[str, int] = {}

    def __init__(self, signature: Signature, pool: Pool[WorkerProcess], calls: CallServer, *, batched: bool) -> None:
        self.signature = signature
        self._pool = pool
        self._calls = calls
        self._outputs = _Outputs(signature.outputs, batched=batched)

    @property
    def problem(self) -> str:
        """Return why it is unavailable, in words; empty while it is available."""
        return self._pool.problem

    @property
    def resident_bytes(self) -> int:
        return sum([worker.resident_bytes for worker in self._pool.workers])

    @property
    def calls_under_way(self) -> int:
        """Return the number of its pending requests to other models."""
        return self._calls.under_way

    def connect(self, calls: Calls) -> None:
        self._calls.calls = calls

    def close(self) -> None:
        self._pool.close()
        OWN.close(self._calls)

    def _tensors(self, inputs: Sequence[Array]) -> list[Tensor]:
        return [
            Tensor(spec.name, spec.datatype, array)
            for spec, array in zip(self.signature.inputs, inputs, strict=True)
            if array is not ABSENT
        ]


class PythonModel(RemotePythonModel):
    """A model that sends one response per request."""

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """Run one request without a client, as warm-up does."""
        (answer,) = self.run_requests([_OwnRequest(inputs)])
        if isinstance(answer, ServingError):
            raise answer
        return answer

    def run_requests(self, requests: Sequence[Asked]) -> list[Answer]:
        return self._gathered(requests, _Gathering(len(requests), self._outputs.arranged))

    def _gathered(self, requests: Sequence[Asked], gathering: "_Gathering[A]", *, explain: bool = False) -> list[A]:
        with self._pool.lent() as worker:
            asking = [
                Asking(
                    {"id": request.id, "outputs": list(request.outputs), "parameters": dict(request.parameters)},
                    self._tensors(request.inputs),
                    gathering.taking(number, request),
                )
                for number, request in enumerate(requests)
            ]
            for number, request in zip(worker.execute(asking, explain=explain), requests, strict=True):
                request.when_cancelled(partial(worker.cancel, number))
            return gathering.wait()


class ExplainingPythonModel(PythonModel):
    """A model that has `explain`, whose outputs are free in name and shape."""

    def explain_requests(self, requests: Sequence[Asked]) -> list[Explanation]:
        return self._gathered(requests, _Gathering(len(requests), _explanation), explain=True)


def _explanation(response: Response, _names: Sequence[str]) -> Explanation:
    return tuple(response.outputs or ())


class _Outputs:
    """Converts a worker's tensors to outputs in the signature's order, as the config declares them."""

    def __init__(self, specs: Sequence[TensorSpec], *, batched: bool) -> None:
        self._positions = {spec.name: (position, spec) for position, spec in enumerate(specs)}
        self._batched = batched

    def arranged(self, response: Response, names: Sequence[str]) -> Outputs:
        """Return the outputs; raises BackendError where they are not those of the config, or lack one of `names`."""
        arrays: list[Array] = [ABSENT] * len(self._positions)
        for name, datatype, array in response.outputs or ():
            position, spec = self._positions.get(name, (None, None))
            if position is None or spec is None:
                raise BackendError(f"the model gave output '{name}'; its config has {', '.join(self._positions)}")
            if array.dtype != spec.datatype.dtype:
                raise BackendError(
                    f"the model gave output '{name}' as {datatype.name}, but its config says {spec.datatype.name}"
                )
            if not _fits(array.shape, spec.shape):
                raise BackendError(
                    f"the model gave output '{name}' with shape {list(array.shape)}, but its config says "
                    f"{list(spec.shape)}{_NOTES[self._batched]}"
                )
            arrays[position] = array
        for name in names:
            if arrays[self._positions[name][0]] is ABSENT:
                raise BackendError(f"the model's response lacks the requested output '{name}'")
        return Outputs(arrays, response.parameters)


class _Gathering(Generic[A]):
    """The responses to the requests of one batch, one for each.

    Args:
        arranged: converts a response to a request's outputs; raises BackendError.
    """

    def __init__(self, count: int, arranged: Callable[[Response, Sequence[str]], A]) -> None:
        self._answers: list[A | ServingError | None] = [None] * count
        self._left = count
        self._arrange = arranged
        self._complete = threading.Event()

    def taking(self, number: int, request: Asked) -> Any:
        """Return the receiver of one request's responses."""

        def take(response: Response) -> None:
            if response.error is not None:
                self._answers[number] = response.error
            elif response.outputs is not None:
                self._answers[number] = self._arranged(number, response, request)
            if not response.final:
                return
            if self._answers[number] is None:
                self._answers[number] = BackendError("the model ended its responses without having sent one")
            self._left -= 1
            if not self._left:
                self._complete.set()

        return take

    def wait(self) -> list[A]:
        """Return the responses, errors among them."""
        self._complete.wait()
        return cast("list[A]", self._answers)

    def _arranged(self, number: int, response: Response, request: Asked) -> A | ServingError:
        if self._answers[number] is not None:
            return BackendError("the model sent several responses to a request; that needs a decoupled policy")
        try:
            return self._arrange(response, request.outputs)
        except BackendError as error:
            return error


class _OwnRequest:
    """A request of the server itself."""

    id = ""
    outputs: Sequence[str] = ()
    parameters: Mapping[str, Any] = NO_PARAMETERS

    def __init__(self, inputs: Sequence[Array]) -> None:
        self.inputs = inputs

    def when_cancelled(self, notify: Any) -> None:
        """Does nothing: it is never cancelled."""


def _fits(shape: tuple[int, ...], pattern: tuple[int, ...]) -> bool:
    return len(shape) == len(pattern) and all(
        wanted in (-1, found) for found, wanted in zip(shape, pattern, strict=True)
    )


class DecoupledPythonModel(RemotePythonModel):
    """One version of a decoupled model; a process runs many requests concurrently, each with a waiting thread."""

    def stream(self, inputs: Sequence[Array], send: Send) -> None:
        asked = {"id": send.id, "outputs": list(send.outputs), "parameters": dict(send.parameters)}
        with self._pool.lent() as worker:
            responses: queue.SimpleQueue[Response] = queue.SimpleQueue()
            (number,) = worker.execute([Asking(asked, self._tensors(inputs), responses.put)])
            send.when_cancelled(partial(worker.cancel, number))
            while True:
                response = responses.get()
                if response.error is not None:
                    raise response.error
                if response.outputs is not None:
                    try:
                        send(self._outputs.arranged(response, send.outputs))
                    except Cancelled:
                        worker.cancel(number)
                        raise
                    worker.taken(number)
                if response.final:
                    return
