"""Request observers: the tracer and the taps of an engine, which see clients' requests while their settings enable it.

An engine has its observers from the beginning; it passes a request here only while `active`. Steps of ensembles and
requests of models to other models do not pass here.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable, InferRequest, OnDone, Outcome, RequestContext
from serving_runtime.telemetry.tap.tap import Recording
from serving_runtime.telemetry.tap.taps import Taps
from serving_runtime.telemetry.tracing.trace import BACKEND_OUTPUT, QUEUE_INPUT, Trace
from serving_runtime.telemetry.tracing.tracer import Tracer

Started = TypeVar("Started", bound=Cancellable)
Start = Callable[[InferRequest, OnDone], Started]


class Observers:
    """The observers of one engine.

    Args:
        tracer: None for none.

    Attributes:
        active: whether any request may be observed now; follows the settings of the tracer and the shares of the taps.
    """

    def __init__(self, tracer: Tracer | None = None, taps: Taps | None = None) -> None:
        self.active = False
        self._tracer = tracer
        self._taps = taps if taps is not None else Taps()
        self._traces = self._records = False
        if tracer is not None:
            tracer.on_change = self._look
        self._taps.on_change(self._look)
        self._look()

    def _look(self) -> None:
        """Read the settings, which have changed."""
        self._traces = self._tracer is not None and self._tracer.active
        self._records = self._taps.active
        self.active = self._traces or self._records

    def start(self, start: "Start[Started]", request: InferRequest, on_done: OnDone) -> Started:
        """Start a request as `start` does, traced and recorded where it is sampled; raises ServingError as `start`."""
        trace = self._begun(request) if self._traces else None
        if trace is not None:
            request = request._replace(context=(request.context or RequestContext())._replace(trace=trace))
        recordings = self._taps.recordings(request) if self._records else ()
        if trace is None and not recordings:
            return start(request, on_done)

        def noting(outcome: Outcome) -> None:
            on_done(outcome)
            self._note(outcome, trace, recordings)

        try:
            return start(request, noting)
        except ServingError as error:
            self._note(error, trace, recordings)
            raise

    def _begun(self, request: InferRequest) -> Trace | None:
        """Return the trace of a sampled request."""
        assert self._tracer is not None  # noqa: S101 - it is active
        trace = self._tracer.begin(request.model_name, request.model_version, request.context)
        if trace is not None:
            trace.carried(QUEUE_INPUT, request.inputs)
        return trace

    def _note(self, outcome: Outcome, trace: Trace | None, recordings: Sequence[Recording]) -> None:
        """Note an outcome, after it was sent to the client."""
        for recording in recordings:
            recording.note(outcome)
        if trace is None or self._tracer is None:
            return
        if isinstance(outcome, ServingError):
            self._tracer.end(trace, "", outcome.message)
            return
        trace.carried(BACKEND_OUTPUT, outcome.outputs)
        if outcome.final:
            self._tracer.end(trace, outcome.model_version)
