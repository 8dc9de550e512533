"""Decoding of large requests in the side thread; they start on the event loop afterwards."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar

from serving_runtime.common import side_thread
from serving_runtime.common.errors import ServingError
from serving_runtime.common.request import Cancellable

if TYPE_CHECKING:
    import asyncio

logger = logging.getLogger(__name__)

SLOW_BYTES = 256 * 1024
"""Size of a request that is slow to decode: numbers as text, single elements. Less takes a few milliseconds."""

Found = TypeVar("Found")


class Decoding(Generic[Found]):
    """A request during its decoding in the thread, and then its job.

    Args:
        decode: returns the decoded request; raises ServingError.
        begin: starts it on the event loop, and returns a handle to cancel; raises ServingError.
        count: counts a request that was refused before it had begun.
        refuse: answers with the error.
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
        self._future = side_thread.submitted(decode)
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
            self._refuse(error.with_traceback(None))  # its frames hold the data decoded before
            return
        try:
            self._job = self._begin(future.result())
        except ServingError as error:
            self._refuse(error)
        except Exception:  # its client gets an error, the others are served
            logger.exception("a large request could not be decoded")
            self._refuse(ServingError("internal error"))
