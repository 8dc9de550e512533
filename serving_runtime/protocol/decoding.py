"""Decodes large requests in a thread: the event loop goes on with others meanwhile.

The thread keeps the GIL for a few milliseconds at a time: code that decodes there works in pieces. The collector, which
would go through all that a request becomes and keep the GIL for it, rests while one is decoded.
"""

import asyncio
import gc
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from serving_runtime.errors import ServingError
from serving_runtime.request import Cancellable

logger = logging.getLogger(__name__)

LARGE_BYTES = 256 * 1024
"""Of what takes time to decode: numbers as text, elements one by one. Less takes a few milliseconds."""

_thread = ThreadPoolExecutor(1, "decode")
"""One: the loop keeps the other cores, and its turns at the GIL."""

Found = TypeVar("Found")


async def in_thread(decode: Callable[[], Found]) -> Found:
    """Return what `decode` returns, or raise what it raises."""
    return await asyncio.get_running_loop().run_in_executor(_thread, _undisturbed, decode)


class Decoding(Generic[Found]):
    """A request that is decoded in the thread, and then what becomes of it.

    Args:
        decode: returns the decoded request; raises ServingError.
        begin: goes on with it on the event loop, and returns what to cancel; raises ServingError.
        count: takes note of a request that was refused before it had begun.
        refuse: answers in its place.
    """

    def __init__(
        self,
        decode: Callable[[], Found],
        begin: Callable[[Found], Cancellable | None],
        count: Callable[[ServingError], None],
        refuse: Callable[[ServingError], None],
    ) -> None:
        self._begin = begin
        self._count = count
        self._refuse = refuse
        self._job: Cancellable | None = None
        self._future = asyncio.get_running_loop().run_in_executor(_thread, _undisturbed, decode)
        self._future.add_done_callback(self._on_decoded)

    def cancel(self) -> None:
        self._future.cancel()
        if self._job is not None:
            self._job.cancel()

    def _on_decoded(self, future: "asyncio.Future[Found]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if isinstance(error, ServingError):
            self._count(error)
        try:
            self._job = self._begin(future.result())
        except ServingError as error:
            self._refuse(error)
        except Exception:  # its client gets an error, the others are served
            logger.exception("a large request could not be decoded")
            self._refuse(ServingError("internal error"))


def _undisturbed(decode: Callable[[], Found]) -> Found:
    """Return what `decode` returns, while nothing is collected."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return decode()
    finally:
        if collects:
            gc.enable()
