"""Responses of one request as server-sent events, as they come (Triton: generate_stream; MLServer: infer_stream).

What fails before the first response is an ordinary error; what fails later can only be an event inside a 200.
"""

from collections.abc import Callable

import orjson

from serving_runtime.errors import ServingError
from serving_runtime.protocol.http.message import BodyWriter, Reply, Response, error_response
from serving_runtime.request import InferResponse, Outcome, Streaming

_HEADERS = b"Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"


class EventStream:
    """Turns outcomes into events. A model that answers any number of times waits while its client does not read.

    Args:
        text: of a response, as the event's data; one line. Raises ServingError where it has none.
        shows_empty_final: whether the empty response that ends a decoupled model's answers is an event too.
    """

    def __init__(self, reply: Reply, text: Callable[[InferResponse], bytes], *, shows_empty_final: bool) -> None:
        self._reply = reply
        self._text = text
        self._shows_empty_final = shows_empty_final
        self._writer: BodyWriter | None = None
        self.job: Streaming | None = None

    def on_done(self, outcome: Outcome) -> None:
        """Take one outcome of the engine."""
        if isinstance(outcome, ServingError):
            if self._writer is None:
                self._reply(error_response(outcome))
            else:
                self._end_with(outcome)
            return
        if self._writer is None:
            self._reply(Response(200, _HEADERS, (), 0, self))
            if self._writer is None:  # the client asked for the head only, or has gone
                self._cancel()
                return
        if outcome.outputs or self._shows_empty_final:
            try:
                text = self._text(outcome)
            except ServingError as error:
                self._cancel()
                self._end_with(error)
                return
            self._writer.write(b"data: %s\n\n" % text)
        if outcome.final:
            self._writer.end()

    def _end_with(self, error: ServingError) -> None:
        if self._writer is not None:
            self._writer.write(b"data: %s\n\n" % orjson.dumps({"error": error.message}))
            self._writer.end()

    def _cancel(self) -> None:
        if self.job is not None:
            self.job.cancel()

    # What the connection calls

    def begin(self, writer: BodyWriter) -> None:
        self._writer = writer

    def pause(self) -> None:
        if self.job is not None:
            self.job.pause()

    def resume(self) -> None:
        if self.job is not None:
            self.job.resume()
