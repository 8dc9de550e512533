"""Business logic scripting, worker side: requests of a model to other models (Triton: business logic scripting)."""

import asyncio
import json
import queue
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any

from serving_runtime.backends.python.worker.connection import current
from serving_runtime.backends.python.worker.messages import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
    InferenceResponse,
    TritonError,
    checked_parameters,
)
from serving_runtime.backends.python.worker.tensors import Tensor, TritonModelException
from serving_runtime.common.request import Tensor as WireTensor


class InferenceRequest:
    """A request to a model by its name; `exec` blocks until the response, `async_exec` is awaited.

    An error response is returned as one. Responses of decoupled models come one by one.
    """

    def __init__(  # noqa: PLR0917 - Triton's order
        self,
        request_id: str = "",
        correlation_id: int | str = 0,
        inputs: Sequence[Tensor] = (),
        requested_output_names: Sequence[str] = (),
        model_name: str = "",
        model_version: int = -1,
        flags: int = 0,
        timeout: int = 0,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        for tensor in inputs:
            if not isinstance(tensor, Tensor):
                raise TritonModelException(f"inputs must be Tensors, found {type(tensor).__name__}")
        if not model_name:
            raise TritonModelException("an InferenceRequest needs a model_name")
        self._request_id = request_id
        self._correlation_id = correlation_id
        self._inputs = list(inputs)
        self._names = list(requested_output_names)
        self._model = model_name, model_version
        self._flags = flags
        self._timeout = timeout
        self._parameters = checked_parameters(parameters)

    def inputs(self) -> list[Tensor]:
        return self._inputs

    def requested_output_names(self) -> list[str]:
        return self._names

    def request_id(self) -> str:
        return self._request_id

    def correlation_id(self) -> int | str:
        return self._correlation_id

    def model_name(self) -> str:
        return self._model[0]

    def model_version(self) -> int:
        return self._model[1]

    def flags(self) -> int:
        return self._flags

    def set_flags(self, flags: int) -> None:
        self._flags = flags

    def timeout(self) -> int:
        return self._timeout

    def parameters(self) -> str:
        """Return the parameters as JSON."""
        return json.dumps(self._parameters)

    def exec(self, decoupled: bool = False) -> InferenceResponse | Iterator[InferenceResponse]:
        """Return the response, or for a decoupled model an iterator of its responses."""
        answers: queue.SimpleQueue[tuple[dict[str, Any], list[WireTensor]]] = queue.SimpleQueue()
        current().call(self._message(decoupled=decoupled), [tensor.wire for tensor in self._inputs], answers.put)
        if decoupled:
            return _responses(answers)
        return _response(*answers.get())

    async def async_exec(
        self,
        decoupled: bool = False,
    ) -> InferenceResponse | AsyncIterator[InferenceResponse]:
        """Return the response, or for a decoupled model an asynchronous iterator of its responses."""
        loop = asyncio.get_running_loop()
        answers: asyncio.Queue[tuple[dict[str, Any], list[WireTensor]]] = asyncio.Queue()

        def take(answer: tuple[dict[str, Any], list[WireTensor]]) -> None:
            loop.call_soon_threadsafe(answers.put_nowait, answer)

        current().call(self._message(decoupled=decoupled), [tensor.wire for tensor in self._inputs], take)
        if decoupled:
            return _responses_later(answers)
        return _response(*await answers.get())

    def _message(self, *, decoupled: bool) -> dict[str, Any]:
        parameters = dict(self._parameters)
        if self._correlation_id:
            parameters["sequence_id"] = self._correlation_id
            parameters["sequence_start"] = bool(self._flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_START)
            parameters["sequence_end"] = bool(self._flags & TRITONSERVER_REQUEST_FLAG_SEQUENCE_END)
        if self._timeout:
            parameters["timeout"] = self._timeout
        name, version = self._model
        return {
            "do": "infer",
            "model": name,
            "version": "" if version == -1 else str(version),
            "id": self._request_id,
            "outputs": self._names,
            "parameters": parameters,
            "decoupled": decoupled,
        }


def is_model_ready(model_name: str, model_version: str = "") -> bool:
    """Return whether a model of the server is ready."""
    answers: queue.SimpleQueue[tuple[dict[str, Any], list[WireTensor]]] = queue.SimpleQueue()
    current().call({"do": "ready", "model": model_name, "version": model_version}, (), answers.put)
    return bool(answers.get()[0]["ready"])


def _response(message: Mapping[str, Any], tensors: Sequence[WireTensor]) -> InferenceResponse:
    if "error" in message:
        return InferenceResponse(error=TritonError(message["error"]["message"], message["error"]["code"]))
    return InferenceResponse([Tensor.received(tensor) for tensor in tensors], parameters=message["parameters"])


def _responses(answers: "queue.SimpleQueue[tuple[dict[str, Any], list[WireTensor]]]") -> Iterator[InferenceResponse]:
    while True:
        message, tensors = answers.get()
        if tensors or "error" in message:
            yield _response(message, tensors)
        if message["final"]:
            return


async def _responses_later(
    answers: "asyncio.Queue[tuple[dict[str, Any], list[WireTensor]]]",
) -> AsyncIterator[InferenceResponse]:
    while True:
        message, tensors = await answers.get()
        if tensors or "error" in message:
            yield _response(message, tensors)
        if message["final"]:
            return
