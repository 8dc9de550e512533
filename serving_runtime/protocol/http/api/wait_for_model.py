"""On-demand loading over HTTP: inference requests wait until their model is loaded."""

import asyncio
import logging

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable
from serving_runtime.engine.serving.engine import Engine
from serving_runtime.protocol.http.api.routes import Call, View
from serving_runtime.protocol.http.wire.message import Response, error_response, text_error

logger = logging.getLogger(__name__)


def when_there(view: View, engine: Engine) -> View:
    """Return a view that waits for the call's model where it is loaded on demand."""

    def waiting(call: Call) -> Response | Cancellable | None:
        return _Arriving(view, call, engine) if engine.sleeps(call.model) else view(call)

    return waiting


class _Arriving:
    """A request that waits for its model, and then its view's job."""

    def __init__(self, view: View, call: Call, engine: Engine) -> None:
        self._view = view
        self._call = call
        self._engine = engine
        self._job: Cancellable | None = None
        self._task = asyncio.get_running_loop().create_task(self._wait())

    def cancel(self) -> None:
        self._task.cancel()
        if self._job is not None:
            self._job.cancel()

    async def _wait(self) -> None:
        try:
            request = self._call.request
            await self._engine.arrive(self._call.model, len(request.body) - request.body_offset)
            answer = self._view(self._call)
        except ServingError as error:
            answer = error_response(error)
        except Exception:  # a bug: the client gets an error, the log the details
            logger.exception("answering %r failed", self._call.request.target[:200])
            answer = text_error(500, "internal error")
        if isinstance(answer, Response):
            self._call.reply(answer)
        else:
            self._job = answer
