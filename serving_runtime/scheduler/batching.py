"""Dynamic batching decisions, as pure functions: the size of the next batch, and the thread that runs it."""

from collections.abc import Sequence

from serving_runtime.config.batching import BatchPolicy

INLINE_US_PER_REQUEST = 200
"""Above this a hop to a thread and back costs less than the event loop loses by waiting."""

INLINE_US_PER_RUN = 2000
"""Limit of a whole run, however many requests share it: no run may block the event loop for longer."""


def take(rows: Sequence[int], oldest_wait_us: int, policy: BatchPolicy, *, complete: bool = False) -> int:
    """Return how many requests from the head of the queue to run now.

    Called when an instance is free. Runs a preferred or the full batch size at once, a smaller one when the oldest
    request has waited for the delay (Triton: model configuration, dynamic batcher).

    Args:
        rows: row count of each queued request that may be joined, oldest first; each <= max_batch_size.
        oldest_wait_us: how long the oldest of them has waited, in microseconds.
        complete: no later request can join these, so waiting is useless.

    Returns:
        A prefix length; 0 means wait for more requests or for the delay to pass.
    """
    limit = policy.max_batch_size
    total = fitting = preferred = 0
    for count in rows:
        total += count
        if total > limit:
            break
        fitting += 1
        if total in policy.preferred_batch_sizes:
            preferred = fitting
    if preferred:
        return preferred
    full = total >= limit or complete
    if full or oldest_wait_us >= policy.max_queue_delay_us:
        return fitting
    return 0


def runs_inline(*, now_inline: bool, run_us: float, request_us: float) -> bool:
    """Return whether the model should run in the event loop, from the time of a run and each request's share of it.

    The limits for moving into the loop are half those for leaving it (hysteresis).
    """
    slack = 1.0 if now_inline else 0.5
    return run_us <= slack * INLINE_US_PER_RUN and request_us <= slack * INLINE_US_PER_REQUEST
