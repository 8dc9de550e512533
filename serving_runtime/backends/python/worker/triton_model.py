"""Triton Python model: runs an unchanged `TritonPythonModel` with initialize, execute, finalize."""

import asyncio
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from serving_runtime.backends.python.worker.connection import current
from serving_runtime.backends.python.worker.messages import IncomingRequest, InferenceResponse, TritonError
from serving_runtime.common.request import Tensor

CLASS_NAME = "TritonPythonModel"


class TritonModel:
    """The one object of the model's class, and how it is called.

    Args:
        kind: the class.
        arguments: of `initialize`.
    """

    def __init__(self, kind: Any, arguments: Mapping[str, str], *, decoupled: bool) -> None:
        self._name = arguments["model_name"], int(arguments["model_version"])
        self._decoupled = decoupled
        self._loop: asyncio.AbstractEventLoop | None = None
        self._model = kind()
        if hasattr(self._model, "initialize"):
            self._model.initialize(dict(arguments))

    @property
    def explains(self) -> bool:
        return hasattr(self._model, "explain")

    def execute(self, content: Sequence[Mapping[str, Any]], tensors: Sequence[Tensor], *, explain: bool) -> None:
        """Run the requests of one batch and send their responses, except those that the model sends itself."""
        remaining = iter(tensors)
        requests = [
            IncomingRequest(request, [next(remaining) for _ in range(request["inputs"])], self._name)
            for request in content
        ]
        if self._decoupled:
            for request in requests:
                request.get_response_sender()  # the last reference to it ends the responses
        try:
            answers = self._called(self._model.explain if explain else self._model.execute, requests)
        except Exception as error:
            traceback.print_exc()
            _fail(requests, f"the model failed: {type(error).__name__}: {error}")
            return
        if mistake := self._mistake(answers, requests):
            _fail(requests, mistake)
        elif answers is not None:
            _send(requests, answers)

    def finalize(self) -> None:
        if hasattr(self._model, "finalize"):
            self._model.finalize()

    def _called(self, run: Callable[[list[IncomingRequest]], Any], requests: list[IncomingRequest]) -> Any:
        answers = run(requests)
        if not inspect.iscoroutine(answers):
            return answers
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(answers)

    def _mistake(self, answers: Any, requests: Sequence[IncomingRequest]) -> str:
        """Return the error in the result of `execute`, in a sentence; empty if correct."""
        if self._decoupled:
            return "" if answers is None else "execute() of a decoupled model must return None and send its responses"
        if answers is None:
            answers = [None] * len(requests)
        if not isinstance(answers, (list, tuple)) or len(answers) != len(requests):
            found = len(answers) if isinstance(answers, (list, tuple)) else type(answers).__name__
            return f"execute() must return a list of {len(requests)} responses, one per request, found {found}"
        for answer, request in zip(answers, requests, strict=True):
            if not (isinstance(answer, InferenceResponse) or (answer is None and request.sender is not None)):
                hint = "" if answer is not None else " for a request whose response sender it never asked for"
                return f"execute() must return InferenceResponses, found {type(answer).__name__}{hint}"
        return ""


def _send(requests: Sequence[IncomingRequest], answers: Sequence[InferenceResponse | None]) -> None:
    responses, outputs = [], []
    for request, answer in zip(requests, answers, strict=True):
        if answer is None:
            continue
        response, tensors = answer.content(request.number, final=True)
        responses.append(response)
        outputs += tensors
        current().answered(request.number)
        if request.sender is not None:
            request.sender.closed = True
    current().send({"do": "responses", "responses": responses}, outputs)


def _fail(requests: Sequence[IncomingRequest], message: str) -> None:
    """Send an error to requests without a final response."""
    left = [request for request in requests if request.sender is None or not request.sender.closed]
    _send(left, [InferenceResponse(error=TritonError(message))] * len(left))
