"""Request observers: tracer and taps wrap an engine while they are active; else requests go to the engine itself."""

from collections.abc import Callable
from typing import TypeVar

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable, InferRequest, OnDone, Outcome, RequestContext
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.telemetry.tap.taps import Taps
from serving_runtime.telemetry.tracing.trace import BACKEND_OUTPUT, QUEUE_INPUT
from serving_runtime.telemetry.tracing.tracer import Tracer

Started = TypeVar("Started", bound=Cancellable)
Start = Callable[[InferRequest, OnDone], Started]


def follow(engine: Engine, tracer: Tracer, taps: Taps) -> None:
    """Let the tracer and the taps see clients' requests, whenever their settings enable it."""
    plain = {"infer": engine.infer, "stream": engine.stream}

    def switch() -> None:
        for name, start in plain.items():
            seen = _recorded(start, taps) if taps.active else start
            setattr(engine, name, _followed(seen, tracer) if tracer.active else seen)

    tracer.on_change = switch
    taps.on_change(switch)
    switch()


def _recorded(start: "Start[Started]", taps: Taps) -> "Start[Started]":
    """Wrap `start` so that the taps may record its requests; steps of ensembles do not pass here."""

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


def _followed(start: "Start[Started]", tracer: Tracer) -> "Start[Started]":
    def followed(request: InferRequest, on_done: OnDone) -> Started:
        trace = tracer.begin(request.model_name, request.model_version, request.context)
        if trace is None:
            return start(request, on_done)

        trace.carried(QUEUE_INPUT, request.inputs)

        def noting(outcome: Outcome) -> None:
            on_done(outcome)
            if not isinstance(outcome, ServingError):
                trace.carried(BACKEND_OUTPUT, outcome.outputs)
            if isinstance(outcome, ServingError):
                tracer.end(trace, "", outcome.message)
            elif outcome.final:
                tracer.end(trace, outcome.model_version)

        context = (request.context or RequestContext())._replace(trace=trace)
        try:
            return start(request._replace(context=context), noting)
        except ServingError as error:
            tracer.end(trace, "", error.message)
            raise

    return followed
