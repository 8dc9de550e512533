"""One thread for what takes long: large requests and answers. The event loop goes on with others meanwhile.

The thread keeps the GIL for a few milliseconds at a time: what runs there works in pieces. The collector, which would
go through all that a request becomes and keep the GIL for it, rests meanwhile.
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
    """Return the future of what `work` returns or raises."""
    return asyncio.get_running_loop().run_in_executor(_thread, _undisturbed, work)


def then(work: Callable[[], Found], done: Callable[[Found | ServingError], None]) -> None:
    """Call `done` on the event loop with what `work` returned or the ServingError that it raised, in a later turn."""

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
    """Hands on what comes in the order it came; what takes long goes through the thread first.

    Args:
        is_long: whether an item takes long.
        work: what becomes of an item; raises ServingError.
        hand_on: takes an item with what became of it, on the event loop.
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
        self._hand_on(item, found)  # busy still: what that brings is behind those that wait
        while self._waiting:
            item = self._waiting.popleft()
            if self._is_long(item):
                self._begin(item)
                return
            self._hand_on(item, self._done_at_once(item))
        self.busy = False


def _undisturbed(work: Callable[[], Found]) -> Found:
    """Return what `work` returns, while nothing is collected."""
    collects = gc.isenabled()
    gc.disable()
    try:
        return work()
    finally:
        if collects:
            gc.enable()
