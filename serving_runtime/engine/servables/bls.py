"""Business logic scripting (Triton): models' own requests to other models of the server."""

import asyncio
import contextlib
from collections.abc import Callable

from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable, InferRequest, OnDone
from serving_runtime.engine.servables.ensemble import Answering


class ServerCalls:
    """Passes the requests of models to the event loop; any thread may call (backends.base.Calls)."""

    def __init__(self, answering: Answering, loop: asyncio.AbstractEventLoop) -> None:
        self._answering = answering
        self._loop = loop

    def infer(
        self, request: InferRequest, on_done: OnDone, on_begun: Callable[[Cancellable], None], *, decoupled: bool
    ) -> None:
        def begin() -> None:
            start = self._answering.stream_step if decoupled else self._answering.infer_step
            try:
                on_begun(start(request, on_done))
            except ServingError as error:
                on_done(error)

        self._soon(begin)

    def cancel(self, request: Cancellable) -> None:
        self._soon(request.cancel)

    def serves(self, name: str, version: str) -> bool:
        return self._answering.serves(name, version)

    def _soon(self, work: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: the server has stopped
            self._loop.call_soon_threadsafe(work)
