"""Request recording: sends clients' requests and their answers to taps, but not the steps of ensembles."""

from collections.abc import Callable
from typing import TypeVar

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable, InferRequest, OnDone, Outcome
from serving_runtime.telemetry.tap.taps import Taps

Started = TypeVar("Started", bound=Cancellable)
Start = Callable[[InferRequest, OnDone], Started]


def recorded(start: "Start[Started]", taps: Taps) -> "Start[Started]":
    """Wrap `start` so that the taps may record its requests."""

    def tapped(request: InferRequest, on_done: OnDone) -> Started:
        recordings = taps.recordings(request)
        if not recordings:
            return start(request, on_done)

        def noting(outcome: Outcome) -> None:
            on_done(outcome)
            for recording in recordings:
                recording.note(outcome)

        try:
            return start(request, noting)
        except ServingError as error:
            for recording in recordings:
                recording.note(error)
            raise

    return tapped
