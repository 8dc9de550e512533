"""Which of an instance's sequences run next, and in which row: the two strategies of Triton's sequence batcher. Pure.

Both return (rows, wait_us): the sequences to run, None in a row that stays empty; no rows means to wait, for `wait_us`
or, where that is 0, until another request comes.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

from serving_runtime.config.batching import BatchPolicy
from serving_runtime.config.sequences import SequencePolicy
from serving_runtime.scheduler.batching import take
from serving_runtime.scheduler.sequences.sequence import LiveSequence

Rows: TypeAlias = list[LiveSequence | None]
Choose: TypeAlias = Callable[[Sequence[LiveSequence | None], int], tuple[Rows, int]]
"""Takes an instance's slots and the time now, in nanoseconds."""


def strategy(policy: SequencePolicy) -> Choose:
    """Return the strategy of a policy."""
    if policy.direct:
        return lambda slots, now_ns: direct(
            slots, now_ns, max_delay_us=policy.max_queue_delay_us, utilization=policy.minimum_slot_utilization
        )
    batches = BatchPolicy(
        max_batch_size=max(policy.max_batch_size, 1),
        preferred_batch_sizes=policy.preferred_batch_sizes,
        max_queue_delay_us=policy.max_queue_delay_us,
        priority_levels=0,
        default_priority_level=0,
        queues={},
    )
    return lambda slots, now_ns: oldest(slots, now_ns, batches)


def direct(
    slots: Sequence[LiveSequence | None], now_ns: int, *, max_delay_us: int, utilization: float
) -> tuple[Rows, int]:
    """Choose by slot: a sequence's row is its slot, rows between may stay empty.

    Leaves at once when the share of slots that are ready reaches `utilization`, else when the oldest request has
    waited for `max_delay_us`. Requests of another shape than the oldest one wait for the next run.
    """
    ready = [sequence for sequence in slots if sequence is not None and sequence.ready]
    if not ready:
        return [], 0
    head = min(ready, key=lambda sequence: sequence.jobs[0].arrived_ns)
    waited_us = (now_ns - head.jobs[0].arrived_ns) // 1000
    # without a utilization to reach, one ready slot is enough
    if len(ready) < utilization * len(slots) and waited_us < max_delay_us:
        return [], max_delay_us - waited_us
    rows: Rows = [
        sequence if sequence is not None and sequence.ready and sequence.key == head.key else None for sequence in slots
    ]
    while rows[-1] is None:
        rows.pop()
    return rows, 0


def oldest(slots: Sequence[LiveSequence | None], now_ns: int, policy: BatchPolicy) -> tuple[Rows, int]:
    """Choose by age of the sequences' next requests, as the dynamic batcher does; no row stays empty."""
    ready = [sequence for sequence in slots if sequence is not None and sequence.ready]
    if not ready:
        return [], 0
    ready.sort(key=lambda sequence: sequence.jobs[0].arrived_ns)
    head = ready[0]
    alike = 1
    while alike < len(ready) and ready[alike].key == head.key:
        alike += 1
    waited_us = (now_ns - head.jobs[0].arrived_ns) // 1000
    count = take([1] * alike, waited_us, policy, complete=alike < len(ready))
    if not count:
        return [], policy.max_queue_delay_us - waited_us
    return list(ready[:count]), 0
