"""Sequence batching strategies (Triton: direct, oldest): which sequences of an instance run next, in which rows. Pure.

Both return (rows, wait_us): the sequences to run, None for an empty row; no rows means to wait, for `wait_us`
or, where that is 0, until the next request.
"""

from collections.abc import Callable, Collection, Hashable
from typing import NamedTuple, TypeAlias

from serving_runtime.config.batching import BatchPolicy
from serving_runtime.config.sequences import SequencePolicy
from serving_runtime.scheduler.batching import take
from serving_runtime.scheduler.sequences.sequence import LiveSequence

Rows: TypeAlias = list[LiveSequence | None]
Choose: TypeAlias = Callable[[Collection[LiveSequence], int, int], tuple[Rows, int]]
"""Takes an instance's ready sequences, its number of slots, and the time now, in nanoseconds."""


def strategy(policy: SequencePolicy) -> Choose:
    """Return the strategy of a policy."""
    if policy.direct:
        return lambda ready, slots, now_ns: direct(
            ready, slots, now_ns, max_delay_us=policy.max_queue_delay_us, utilization=policy.minimum_slot_utilization
        )
    batches = BatchPolicy(
        max_batch_size=max(policy.max_batch_size, 1),
        preferred_batch_sizes=policy.preferred_batch_sizes,
        max_queue_delay_us=policy.max_queue_delay_us,
        priority_levels=0,
        default_priority_level=0,
        queues={},
    )
    return lambda ready, _slots, now_ns: oldest(ready, now_ns, batches)


def direct(
    ready: Collection[LiveSequence], slots: int, now_ns: int, *, max_delay_us: int, utilization: float
) -> tuple[Rows, int]:
    """Choose by slot: a sequence's row is its slot; rows between may stay empty.

    Runs at once when the share of ready slots reaches `utilization`, else when the oldest request has waited for
    `max_delay_us`. Requests of another shape than the oldest one wait for the next run.
    """
    if not ready:
        return [], 0
    head = min(ready, key=lambda sequence: sequence.jobs[0].arrived_ns)
    waited_us = (now_ns - head.jobs[0].arrived_ns) // 1000
    # without a utilization to reach, one ready slot is enough
    if len(ready) < utilization * slots and waited_us < max_delay_us:
        return [], max_delay_us - waited_us
    alike = [sequence for sequence in ready if sequence.key == head.key]
    rows: Rows = [None] * (max(sequence.slot for sequence in alike) + 1)
    for sequence in alike:
        rows[sequence.slot] = sequence
    return rows, 0


def oldest(ready: Collection[LiveSequence], now_ns: int, policy: BatchPolicy) -> tuple[Rows, int]:
    """Choose by age of the sequences' next requests, as the dynamic batcher does; no row stays empty."""
    if not ready:
        return [], 0
    by_age = sorted(ready, key=lambda sequence: sequence.jobs[0].arrived_ns)
    count, wait_us = take([_Next(1, each.key, each.jobs[0].arrived_ns) for each in by_age], now_ns, policy)
    return list(by_age[:count]), wait_us


class _Next(NamedTuple):
    """The next request of a sequence (batching.Waiting)."""

    rows: int
    shape_key: Hashable
    arrived_ns: int
