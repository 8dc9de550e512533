"""Cache of metrics pages, for replicas that many services share.

A replica of a model pool answers for thousands of services. Each of them is looked at for its traffic, and all find
their rows on the same page: it is read once for all looks of a few seconds, failures included.
"""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future

from common.errors import Unavailable

MOST_BYTES = 64 << 20
"""Most characters of all kept pages together; the oldest leave."""
LONGEST_S = 10.0
"""Pages that are older leave; no caller asks for those."""


class RecentPages:
    """Pages that were read in the last seconds. Thread-safe; who asks for a page that is being read waits for it.

    Args:
        most_bytes: of all pages together.
        clock: monotonic, in seconds.
    """

    def __init__(self, *, most_bytes: int = MOST_BYTES, clock: Callable[[], float] = time.monotonic) -> None:
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._reads: dict[Hashable, tuple[float, Future[str]]] = {}

    def read(self, key: Hashable, read: Callable[[], str], *, age_s: float) -> str:
        """Return a page whose read began at most `age_s` ago; raises Unavailable."""
        with self._lock:
            began, page = self._reads.get(key, (float("-inf"), None))
            if page is not None and self._clock() - began <= age_s:
                mine = False
            else:
                mine, page = True, Future[str]()
                self._reads.pop(key, None)
                self._reads[key] = self._clock(), page  # the newest are the last
        if mine:
            try:
                page.set_result(read())
            except Unavailable as error:
                page.set_exception(error)
            except BaseException as error:
                page.set_exception(error)
                self._forget(key, page)
                raise
            self._bound()
        return page.result()

    def _forget(self, key: Hashable, page: Future[str]) -> None:
        with self._lock:
            if self._reads.get(key, (0.0, None))[1] is page:
                del self._reads[key]

    def _bound(self) -> None:
        """Let old pages leave, and the oldest where all are too large."""
        with self._lock:
            total = sum(map(_size, self._reads.values()))
            for key, each in list(self._reads.items()):
                began, page = each
                if page.done() and (self._clock() - began > LONGEST_S or total > self._most_bytes):
                    total -= _size(each)
                    del self._reads[key]


def _size(read: tuple[float, Future[str]]) -> int:
    page = read[1]
    return len(page.result()) if page.done() and page.exception() is None else 0
