"""Batch profile: executions of a model by batch size, to compare replicas with different load. Pure.

A batch takes less time per row than its rows one by one, and a replica with little traffic makes small batches. So the
comparison is not in rows per second, but in the time that stable takes for the canary's executions (direct
standardisation, as with death rates of populations of another age).
"""

from collections.abc import Iterable

from integrations.clusters.base import BatchTime

Batches = tuple[BatchTime, ...]
"""In ascending order of size, each size at most once."""


def plus(one: Batches, other: Batches) -> Batches:
    """Return the sum of both."""
    return _sums([*one, *other])


def minus(now: Batches, before: Batches) -> Batches:
    """Return what was added since `before`."""
    taken_away = [BatchTime(each.size, -each.rows, -each.duration_us) for each in before]
    return tuple(each for each in _sums([*now, *taken_away]) if each.rows or each.duration_us)


def has_fallen(now: Batches, before: Batches) -> bool:
    """Return whether some counter is lower than before, so that the counters were reset."""
    return any(each.rows < 0 or each.duration_us < 0 for each in minus(now, before))


def relative_throughput(canary: Batches, stable: Batches) -> float | None:
    """Return the canary's throughput relative to stable's, 1 for equal.

    Only sizes that both ran are compared; None without any.
    """
    paces = {each.size: each.duration_us / each.rows for each in stable if each.rows and each.duration_us}
    alike = [each for each in canary if each.size in paces and each.rows and each.duration_us]
    if not alike:
        return None
    return sum(each.rows * paces[each.size] for each in alike) / sum(each.duration_us for each in alike)


def rows_per_second(batches: Batches) -> float:
    """Return rows inferred per second of execution, over all sizes; 0 where nothing ran."""
    return 1e6 * sum(each.rows for each in batches) / max(1, sum(each.duration_us for each in batches))


def _sums(every: Iterable[BatchTime]) -> Batches:
    found: dict[int, BatchTime] = {}
    for each in every:
        before = found.get(each.size, BatchTime(each.size, 0, 0))
        found[each.size] = BatchTime(each.size, before.rows + each.rows, before.duration_us + each.duration_us)
    return tuple(found[size] for size in sorted(found))
