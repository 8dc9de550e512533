"""Executions of a model by their size, so that replicas with more and with less traffic can be compared. Pure.

A batch takes less time per row than its rows one by one, and a replica with little traffic makes small batches. So the
canary is not asked how many rows it did per second, but how long stable takes for the same executions (direct
standardisation, as with death rates of populations of another age).
"""

from collections.abc import Iterable

from integrations.clusters.base import BatchTime

Batches = tuple[BatchTime, ...]
"""By rising size, each at most once."""


def plus(one: Batches, other: Batches) -> Batches:
    """Return both together."""
    return _sums([*one, *other])


def minus(now: Batches, before: Batches) -> Batches:
    """Return what was added since `before`."""
    taken_away = [BatchTime(each.size, -each.rows, -each.duration_us) for each in before]
    return tuple(each for each in _sums([*now, *taken_away]) if each.rows or each.duration_us)


def has_fallen(now: Batches, before: Batches) -> bool:
    """Return whether some counter is lower than before, so that they began again."""
    return any(each.rows < 0 or each.duration_us < 0 for each in minus(now, before))


def relative_throughput(canary: Batches, stable: Batches) -> float | None:
    """Return how much of stable's throughput the canary has, 1 for as much.

    Only sizes that both had are compared; None without any.
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
