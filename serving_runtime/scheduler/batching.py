"""Dynamic batching decisions, as pure functions: the size of the next batch, and the thread that runs it."""

from collections.abc import Hashable, Iterable
from itertools import accumulate, islice
from typing import Protocol

from serving_runtime.config.batching import BatchPolicy

INLINE_US_PER_REQUEST = 200
"""Above this a hop to a thread and back costs less than the event loop loses by waiting."""

INLINE_US_PER_RUN = 2000
"""Limit of a whole run, however many requests share it: no run may block the event loop for longer."""


class Waiting(Protocol):
    """A waiting request.

    Attributes:
        rows: length of its batch dimension, at most the policy's max_batch_size.
        shape_key: equal for requests that may be joined.
        arrived_ns: nanoseconds of the monotonic clock.
    """

    @property
    def rows(self) -> int: ...
    @property
    def shape_key(self) -> Hashable: ...
    @property
    def arrived_ns(self) -> int: ...


def take(waiting: Iterable[Waiting], now_ns: int, policy: BatchPolicy) -> tuple[int, int]:
    """Return how many requests from the head of the queue to run now, and how long to wait where that is 0.

    Called when an instance is free. Joins requests of one shape, up to the maximum batch size and never a part of one.
    Runs a preferred or the full batch size at once, a smaller one when the oldest request has waited for the delay or
    when no later request can join (Triton: model configuration, dynamic batcher).

    Args:
        waiting: in the order in which they are to run; at least one, and every loop over them begins with the first.

    Returns:
        A prefix length, 0 to wait; and then the microseconds until the delay has passed, unless another request comes.
    """
    requests = iter(waiting)
    first = next(requests)
    key, rows, limit = first.shape_key, first.rows, policy.max_batch_size
    count, full = 1, False
    for request in requests:
        rows += request.rows
        if rows > limit or request.shape_key != key:
            full = True
            break
        count += 1
    if policy.preferred_batch_sizes:
        sizes = accumulate([request.rows for request in islice(waiting, count)])
        preferred = [number for number, size in enumerate(sizes, 1) if size in policy.preferred_batch_sizes]
        if preferred:
            return preferred[-1], 0
    delay_us = policy.max_queue_delay_us
    if full or not delay_us or rows >= limit:
        return count, 0
    waited_us = (now_ns - min([request.arrived_ns for request in islice(waiting, count)])) // 1000
    return (count, 0) if waited_us >= delay_us else (0, delay_us - waited_us)


def runs_inline(*, now_inline: bool, run_us: float, request_us: float) -> bool:
    """Return whether the model should run in the event loop, from the time of a run and each request's share of it.

    The limits for moving into the loop are half those for leaving it (hysteresis).
    """
    slack = 1.0 if now_inline else 0.5
    return run_us <= slack * INLINE_US_PER_RUN and request_us <= slack * INLINE_US_PER_REQUEST
