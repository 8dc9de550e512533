"""Triton's request API: pb_utils.InferenceRequest, InferenceResponse, InferenceResponseSender, TritonError."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from serving_runtime.backends.python.wire.failures import CODES
from serving_runtime.backends.python.worker.connection import Answering, current
from serving_runtime.backends.python.worker.tensors import Tensor, TritonModelException
from serving_runtime.common.request import Tensor as WireTensor

TRITONSERVER_REQUEST_FLAG_SEQUENCE_START = 1
TRITONSERVER_REQUEST_FLAG_SEQUENCE_END = 2
TRITONSERVER_RESPONSE_COMPLETE_FINAL = 1


class TritonError:
    """Why a request failed; `code` decides the status that clients see, INTERNAL by default."""

    UNKNOWN, INTERNAL, NOT_FOUND, INVALID_ARG = "UNKNOWN", "INTERNAL", "NOT_FOUND", "INVALID_ARG"
    UNAVAILABLE, UNSUPPORTED, ALREADY_EXISTS, CANCELLED = "UNAVAILABLE", "UNSUPPORTED", "ALREADY_EXISTS", "CANCELLED"

    def __init__(self, message: str, code: str = INTERNAL) -> None:
        if code not in CODES:
            raise TritonModelException(f"TritonError has no code {code!r}; it has {', '.join(CODES)}")
        self._message = str(message)
        self._code = code

    def message(self) -> str:
        return self._message

    def code(self) -> str:
        return self._code

    def __str__(self) -> str:
        return self._message


class InferenceResponse:
    """Outputs, or an error instead."""

    def __init__(
        self,
        output_tensors: Sequence[Tensor] = (),
        error: TritonError | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        for tensor in output_tensors:
            if not isinstance(tensor, Tensor):
                raise TritonModelException(f"output_tensors must be Tensors, found {type(tensor).__name__}")
        if error is not None and not isinstance(error, TritonError):
            raise TritonModelException(f"error must be a TritonError, found {type(error).__name__}")
        self._outputs = list(output_tensors)
        self._error = error
        self._parameters = checked_parameters(parameters)

    def output_tensors(self) -> list[Tensor]:
        return self._outputs

    def has_error(self) -> bool:
        return self._error is not None

    def error(self) -> TritonError | None:
        return self._error

    def parameters(self) -> str:
        """Return the parameters as JSON."""
        return json.dumps(self._parameters)

    def content(self, number: int, *, final: bool) -> tuple[dict[str, Any], list[WireTensor]]:
        """Return the response to a request, as sent to the server."""
        outputs = [] if self._error is not None else [tensor.wire for tensor in self._outputs]
        message: dict[str, Any] = {"number": number, "final": final, "outputs": len(outputs)}
        if self._error is not None:
            message["error"] = {"message": self._error.message(), "code": self._error.code()}
        if self._parameters:
            message["parameters"] = self._parameters
        return message, outputs


class InferenceResponseSender:
    """Sends the responses of one request, from any thread. Without a last one they end with the sender's lifetime."""

    def __init__(self, number: int, state: Answering) -> None:
        self._number = number
        self._state = state
        self.closed = False

    def send(self, response: InferenceResponse | None = None, flags: int = 0) -> None:
        """Send a response, or the end, or both in one; blocks while a client reads slowly."""
        if self.closed:
            raise TritonModelException("the last response of this request has been sent already")
        final = bool(flags & TRITONSERVER_RESPONSE_COMPLETE_FINAL)
        if response is None and not final:
            raise TritonModelException("send() without a response needs TRITONSERVER_RESPONSE_COMPLETE_FINAL")
        if response is None:
            message: dict[str, Any] = {"number": self._number, "final": True}
            outputs: list[WireTensor] = []
        else:
            self._state.wait_for_room()
            final = final or response.has_error()
            message, outputs = response.content(self._number, final=final)
        self.closed = final
        if final:
            current().answered(self._number)
        current().send({"do": "responses", "responses": [message]}, outputs)

    def is_cancelled(self) -> bool:
        return self._state.cancelled

    def __del__(self) -> None:
        if not self.closed:
            self.send(flags=TRITONSERVER_RESPONSE_COMPLETE_FINAL)


class IncomingRequest:
    """One request of a client, as `execute` gets it (pb_utils.InferenceRequest)."""

    def __init__(self, content: Mapping[str, Any], inputs: Iterable[WireTensor], model: tuple[str, int]) -> None:
        self._content = content
        self._inputs = [Tensor.received(tensor) for tensor in inputs]
        self._model = model
        self._state = current().answering(content["number"])
        self._sender: InferenceResponseSender | None = None

    @property
    def number(self) -> int:
        number: int = self._content["number"]
        return number

    @property
    def sender(self) -> InferenceResponseSender | None:
        """Return the sender, None where `execute` has not taken it."""
        return self._sender

    def inputs(self) -> list[Tensor]:
        return self._inputs

    def requested_output_names(self) -> list[str]:
        return list(self._content["outputs"])

    def request_id(self) -> str:
        return str(self._content["id"])

    def correlation_id(self) -> int | str:
        correlation_id: int | str = self._content["parameters"].get("sequence_id", 0)
        return correlation_id

    def flags(self) -> int:
        given = self._content["parameters"]
        start = TRITONSERVER_REQUEST_FLAG_SEQUENCE_START if given.get("sequence_start") else 0
        return start | (TRITONSERVER_REQUEST_FLAG_SEQUENCE_END if given.get("sequence_end") else 0)

    def timeout(self) -> int:
        """Return the client's queue timeout, in microseconds; 0 for none."""
        return int(self._content["parameters"].get("timeout", 0))

    def model_name(self) -> str:
        return self._model[0]

    def model_version(self) -> int:
        return self._model[1]

    def parameters(self) -> str:
        """Return the request's own parameters as JSON."""
        return json.dumps({name: value for name, value in self._content["parameters"].items() if name not in _RESERVED})

    def is_cancelled(self) -> bool:
        return self._state.cancelled

    def get_response_sender(self) -> InferenceResponseSender:
        if self._sender is None:
            self._sender = InferenceResponseSender(self.number, self._state)
        return self._sender


_RESERVED = frozenset(("sequence_id", "sequence_start", "sequence_end", "priority", "timeout"))
"""Parameters that the server interprets (V2: parameters extension) and Triton hides from a model."""


def checked_parameters(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    for name, value in (parameters or {}).items():
        if not isinstance(value, (bool, int, str, float)):
            raise TritonModelException(f"parameter '{name}' must be a bool, int, str or float, found {value!r}")
    return dict(parameters or {})
