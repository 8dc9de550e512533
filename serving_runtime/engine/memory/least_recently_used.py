"""Least recently used order of loaded models, without work for each request or for each loaded model.

A heap has each model with a moment at or before its last use. The first of the heap is compared with its actual last
use, and goes back with that where it was used since: the order is exact, and each such step is paid for by a request.
"""

import heapq
from collections.abc import Callable


class LeastRecentlyUsed:
    """Names of loaded models by their last use. Lives on the event loop.

    Args:
        last_used_ms: returns when a model was used last.
        may_leave: returns whether a model may be unloaded now.
        stays: returns whether a model is not to be unloaded at all, until it is added again.
    """

    def __init__(
        self, last_used_ms: Callable[[str], int], may_leave: Callable[[str], bool], stays: Callable[[str], bool]
    ) -> None:
        self._last_used_ms = last_used_ms
        self._may_leave = may_leave
        self._stays = stays
        self._heap: list[tuple[int, int, str]] = []
        self._numbers: dict[str, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, name: str) -> bool:
        return name in self._numbers

    def add(self, name: str) -> None:
        """Take a model that was loaded, or that may leave again."""
        self._next += 1
        self._numbers[name] = self._next
        heapq.heappush(self._heap, (self._last_used_ms(name), self._next, name))

    def discard(self, name: str) -> None:
        """Forget a model that is unloaded."""
        self._numbers.pop(name, None)
        if len(self._heap) > 2 * len(self._numbers) + 64:
            self._heap = [entry for entry in self._heap if self._numbers.get(entry[2]) == entry[1]]
            heapq.heapify(self._heap)

    def first(self) -> str | None:
        """Return the least recently used model that may leave; None where none may."""
        heap = self._heap
        busy = []
        found = None
        while heap and found is None:
            known_ms, number, name = heap[0]
            if self._numbers.get(name) != number:
                heapq.heappop(heap)
                continue
            used_ms = self._last_used_ms(name)
            if used_ms > known_ms:
                heapq.heapreplace(heap, (used_ms, number, name))
            elif self._stays(name):
                heapq.heappop(heap)
                del self._numbers[name]
            elif self._may_leave(name):
                found = name
            else:
                busy.append(heapq.heappop(heap))
        for entry in busy:
            heapq.heappush(heap, entry)
        return found
