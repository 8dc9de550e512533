"""Start concurrency limit: a few replicas start at a time, so that serving ones keep their share of the processor.

A start is mostly processor time: the interpreter, libraries, the model. Sixty at once take as long as sixty in turns,
but leave the gateway a sixtieth of each core until all are done.
"""

import asyncio
import heapq
import itertools
import os
from dataclasses import dataclass, field

_MOST_S = 10.0
"""Longest time that a start blocks others. A longer one mostly reads a disk, or fills an accelerator."""


def most_at_once() -> int:
    """Return how many replicas may start at once on this machine: its number of cores plus one."""
    return len(os.sched_getaffinity(0)) + 1


class Turn:
    """The right to start now; it ends once, with the `with` block, by `end`, or by itself after some seconds."""

    def __init__(self, starts: "Starts", seconds: float) -> None:
        self._starts: Starts | None = starts
        self._end = asyncio.get_running_loop().call_later(seconds, self.end)

    def __enter__(self) -> "Turn":
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()

    def end(self) -> None:
        """Give the turn to the next."""
        starts, self._starts = self._starts, None
        if starts is not None:
            self._end.cancel()
            starts.give_back()


@dataclass(order=True, slots=True)
class _Waiting:
    is_new: bool
    number: int
    called: asyncio.Future[None] = field(compare=False)


class Starts:
    """At most `at_once` turns at a time; use it from one event loop."""

    def __init__(self, at_once: int, *, most_s: float = _MOST_S) -> None:
        """Begin with all turns free; a turn lasts `most_s` seconds at most."""
        self._free = at_once
        self._most_s = most_s
        self._numbers = itertools.count()
        self._waiting: list[_Waiting] = []

    async def turn(self, *, is_new: bool) -> Turn:
        """Wait for a turn: replicas that served before (`is_new` is False) come first, then FIFO."""
        if self._free:
            self._free -= 1
        else:
            waiting = _Waiting(is_new, next(self._numbers), asyncio.get_running_loop().create_future())
            heapq.heappush(self._waiting, waiting)
            try:
                await waiting.called
            except asyncio.CancelledError:
                if not waiting.called.cancelled():  # it was called just before
                    self.give_back()
                raise
        return Turn(self, self._most_s)

    def give_back(self) -> None:
        """Give the turn to the next waiter, or keep it free."""
        while self._waiting:
            called = heapq.heappop(self._waiting).called
            if not called.done():
                called.set_result(None)
                return
        self._free += 1
