"""An engine whose requests are recorded; without a tap the engine itself is used and nothing of this is in the way."""

from collections.abc import Callable
from typing import Any, TypeVar

from serving_runtime.engine.engine import Engine
from serving_runtime.errors import ServingError
from serving_runtime.request import Cancellable, InferRequest, OnDone, Outcome, Streaming
from serving_runtime.telemetry.tap.tap import Tap

Started = TypeVar("Started", bound=Cancellable)


class TappedEngine(Engine):
    """Tells a tap of the requests that clients send and their answers, not of the steps of ensembles."""

    def __init__(self, *arguments: Any, tap: Tap, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._tap = tap

    def infer(self, request: InferRequest, on_done: OnDone) -> Cancellable:
        return self._recorded(super().infer, request, on_done)

    def stream(self, request: InferRequest, on_done: OnDone) -> Streaming:
        return self._recorded(super().stream, request, on_done)

    def close(self) -> None:
        super().close()
        self._tap.close()

    def _recorded(
        self, start: Callable[[InferRequest, OnDone], Started], request: InferRequest, on_done: OnDone
    ) -> Started:
        recording = self._tap.recording(request)
        if recording is None:
            return start(request, on_done)

        def noting(outcome: Outcome) -> None:
            on_done(outcome)
            recording.note(outcome)

        try:
            return start(request, noting)
        except ServingError as error:
            recording.note(error)
            raise
