"""Worker thread for large requests and answers, so that the event loop goes on with others.

The thread keeps the GIL for a few milliseconds at a time: its work is done in pieces. The garbage collector, which
would traverse all objects of a request and keep the GIL for it, is off meanwhile.
"""

import asyncio
import gc
import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar

from serving_runtime.common.errors import ServingError

logger = logging.getLogger(__name__)

_thread = ThreadPoolExecutor(1, "side")
"""One: the loop keeps the other cores, and its turns at the GIL."""

Item = TypeVar("Item")
Found = TypeVar("Found")


def submitted(work: Callable[[], Found]) -> "asyncio.Future[Found]":
    """Return the future of the result or exception of `work`."""
    return asyncio.get_running_loop().run_in_executor(_thread, _undisturbed, work)


def then(work: Callable[[], Found], done: Callable[[Found | ServingError], None]) -> None:
    """Call `done` on the event loop with the result of `work` or its ServingError, in a later turn."""

    def on_done(future: "asyncio.Future[Found]") -> None:
        if future.cancelled():  # the loop ends
            return
        error = future.exception()
        if isinstance(error, ServingError):
            done(error)
        elif error is not None:  # its client gets an error, the others are served
            logger.error("work on a large request or answer failed", exc_info=error)
            done(ServingError("internal error"))
        else:
            done(future.result())

    submitted(work).add_done_callback(on_done)


class InOrder(Generic[Item]):
    """Passes items on in the order of arrival; long ones go through the thread first.

    Args:
        is_long: whether an item takes long.
        work: computes the result of an item; raises ServingError.
        hand_on: takes an item and its result, on the event loop.
    """

    __slots__ = ("_hand_on", "_is_long", "_waiting", "_work", "busy")

    def __init__(
        self,
        is_long: Callable[[Item], bool],
        work: Callable[[Item], Found],
        hand_on: Callable[[Item, Found | ServingError], None],
    ) -> None:
        self._is_long = is_long
        self._work: Callable[[Item], object] = work
        self._hand_on: Callable[[Item, object], None] = hand_on  # type: ignore[assignment]
        self._waiting: deque[Item] = deque()
        self.busy = False

    def take(self, item: Item) -> None:
        if self.busy:
            self._waiting.append(item)
        elif self._is_long(item):
            self._begin(item)
        else:
            self._hand_on(item, self._done_at_once(item))

    def _done_at_once(self, item: Item) -> object:
        try:
            return self._work(item)
        except ServingError as error:
            return error.with_traceback(None)  # its frames hold the item, and with it tensors

    def _begin(self, item: Item) -> None:
        self.busy = True
        then(lambda: self._work(item), lambda found: self._go_on(item, found))

    def _go_on(self, item: Item, found: object) -> None:
        self._hand_on(item, found)  # still busy: items that this adds queue behind the waiting ones
        while self._waiting:
            item = self._waiting.popleft()
            if self._is_long(item):
                self._begin(item)
                return
            self._hand_on(item, self._done_at_once(item))
        self.busy = False


def _undisturbed(work: Callable[[], Found]) -> Found:
    """Return the result of `work`, with the garbage collector off."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return work()
    finally:
        if collects:
            gc.enable()
