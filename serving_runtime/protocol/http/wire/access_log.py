"""Access log: wraps an application and writes a line per request (`telemetry.request_log`).

Wraps the V2 application when logging is on; health checks are left out.
"""

import time
from collections.abc import Callable

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable
from serving_runtime.common.statuses import http_status
from serving_runtime.protocol.http.wire.message import Application, Reply, Request, Response
from serving_runtime.telemetry import request_log

_HEADER, _TRACEPARENT = request_log.HEADER.encode(), request_log.TRACEPARENT.encode()
_MODELS = b"/v2/models/"
_HEALTH = b"/v2/health/"


def keeps_header(name: bytes) -> bool:
    """Return whether the line needs a header, by its name as sent."""
    return name.lower() in (_HEADER, _TRACEPARENT)


class LoggedApplication:
    """Passes requests on and logs them with their answers."""

    def __init__(self, application: Application) -> None:
        self._application = application

    def handle(self, request: Request, reply: Reply) -> Cancellable | None:
        path = request.target.partition(b"?")[0]
        if path.startswith(_HEALTH):
            return self._application.handle(request, reply)
        began_ns = time.perf_counter_ns()

        noted_once = False

        def note(status: str) -> None:
            nonlocal noted_once
            if noted_once:  # a chunked answer had begun when the client went away
                return
            noted_once = True
            sent = {name.lower(): value for name, value in reversed(request.headers)}
            model = path.removeprefix(_MODELS).partition(b"/")[0] if path.startswith(_MODELS) else b""
            request_log.note(
                _text(sent.get(_HEADER, b"")),
                _text(model),
                _text(b"%s %s" % (request.method, path)),
                status,
                began_ns,
                traceparent=_text(sent.get(_TRACEPARENT, b"")),
            )

        def noted(response: Response) -> None:
            note(str(response.status))
            reply(response)

        try:
            job = self._application.handle(request, noted)
        except ServingError as error:
            note(str(http_status(error)))
            raise
        return None if job is None else _NotedJob(job, note)


class _NotedJob:
    """A job that is logged as abandoned when its client goes away before the answer."""

    def __init__(self, job: Cancellable, note: Callable[[str], None]) -> None:
        self._job = job
        self._note = note

    def cancel(self) -> None:
        self._note("GONE")
        self._job.cancel()


def _text(sent: bytes) -> str:
    return sent.decode("latin-1")
