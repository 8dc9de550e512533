"""The processor time of short pieces of code: the least of many repeats, which other work on a machine hardly moves."""

import time
from collections.abc import Callable
from typing import Any

REPEATS = 60


def least_us(work: Callable[[], Any], calls: int = 320) -> float:
    """Return the microseconds of one call, of so many in a row."""
    found = []
    for _ in range(REPEATS):
        began = time.process_time_ns()
        for _ in range(calls):
            work()
        found.append((time.process_time_ns() - began) / calls / 1000)
    return min(found)


def least_us_each(prepare: Callable[[], Any], work: Callable[[Any], Any], calls: int) -> float:
    """Return the microseconds of a call by one of the things that `prepare` makes, its own time not counted.

    Args:
        prepare: returns `calls` things, anew for each repeat.
    """
    found = []
    for _ in range(REPEATS):
        things = prepare()
        began = time.process_time_ns()
        for thing in things:
            work(thing)
        found.append((time.process_time_ns() - began) / calls / 1000)
    return min(found)
