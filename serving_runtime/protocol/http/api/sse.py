"""Server-sent events: a request's responses as they come (Triton: generate_stream; MLServer: infer_stream).

A failure before the first response is an ordinary error; a later one can only be an event inside a 200.
"""

from collections.abc import Callable

import orjson

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import InferResponse, Outcome, Streaming
from serving_runtime.common.side_thread import InOrder
from serving_runtime.protocol.http.codec.render_response import outcome_takes_long
from serving_runtime.protocol.http.wire.message import BodyWriter, Reply, Response, error_response

_HEADERS = b"Content-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\n"


class EventStream:
    """Converts outcomes to events. A decoupled model waits while its client does not read.

    Args:
        text: returns a response as the event's data, one line. Raises ServingError where it has none.
        shows_empty_final: whether the empty response that ends a decoupled model's answers is an event too.
    """

    def __init__(self, reply: Reply, text: Callable[[InferResponse], bytes], *, shows_empty_final: bool) -> None:
        self._reply = reply
        self._text = text
        self._shows_empty_final = shows_empty_final
        self._writer: BodyWriter | None = None
        self._write_paused = False
        self._held = False  # the model waits until a text is written
        self._over = False
        self._texts: InOrder[Outcome] = InOrder(outcome_takes_long, self._text_of, self._take)
        self.job: Streaming | None = None

    def on_done(self, outcome: Outcome) -> None:
        """Handle one outcome of the engine."""
        self._texts.take(outcome)
        if self._texts.busy:
            self._held = True
            if self.job is not None:
                self.job.pause()

    def _text_of(self, outcome: Outcome) -> bytes | None:
        """Return an event's data, None for no event."""
        if isinstance(outcome, ServingError):
            raise outcome
        return self._text(outcome) if outcome.outputs or self._shows_empty_final else None

    def _take(self, outcome: Outcome, text: bytes | ServingError | None) -> None:
        if self._over:
            return
        if isinstance(outcome, ServingError):
            if self._writer is None:
                self._reply(error_response(outcome))
            else:
                self._end_with(outcome)
            return
        if self._writer is None:
            self._reply(Response(200, _HEADERS, (), 0, self))
            if self._writer is None:  # a HEAD request, or the client has gone
                self._cancel()
                return
        if isinstance(text, ServingError):
            self._cancel()
            self._end_with(text)
            return
        if text is not None:
            self._writer.write(b"data: %s\n\n" % text)
        if outcome.final:
            self._writer.end()
        elif self._held and not self._write_paused and self.job is not None:
            self._held = False
            self.job.resume()

    def _end_with(self, error: ServingError) -> None:
        if self._writer is not None:
            self._writer.write(b"data: %s\n\n" % orjson.dumps({"error": error.message}))
            self._writer.end()

    def _cancel(self) -> None:
        self._over = True
        if self.job is not None:
            self.job.cancel()

    # Called by the connection

    def begin(self, writer: BodyWriter) -> None:
        self._writer = writer

    def pause(self) -> None:
        self._write_paused = True
        if self.job is not None:
            self.job.pause()

    def resume(self) -> None:
        self._write_paused = False
        if self.job is not None and not self._texts.busy:
            self.job.resume()
