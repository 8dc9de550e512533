"""Exact bin packing by branch and bound, for a few replicas whose heuristic packing may not be optimal. Pure."""

from collections.abc import Sequence
from itertools import accumulate

from placement.slices.free_slices import Shelf
from placement.slices.slice_types import Demand

MOST_REPLICAS = 8
_MOST_STEPS = 4000  # some ten milliseconds; the best packing by then is good enough
_EQUAL = 1e-9

Choice = int | None
"""Per replica: the number of a slice that an earlier one has begun, -1 - k for a new slice of shelf k, or None."""


def better(replicas: Sequence[Demand], shelves: Sequence[Shelf], found: tuple[int, float]) -> Sequence[Choice] | None:
    """Return what each replica gets in a better packing; None where no better one was found in time.

    Args:
        shelves: with all their slices free, the least of a GPU first.
        found: how many replicas are missing, and how much of GPUs is taken.
    """
    search = _Search(replicas, shelves, found)
    search.go(0, 0, 0.0)
    return search.best


class _Search:
    def __init__(self, replicas: Sequence[Demand], shelves: Sequence[Shelf], found: tuple[int, float]) -> None:
        self.best: list[Choice] | None = None
        self._replicas, self._shelves = replicas, shelves
        self._missing, self._share = found
        self._steps = 0
        self._free = [shelf.free for shelf in shelves]
        self._slices: list[tuple[int, int]] = []  # shelf and bytes left; negative where it is not shared
        self._chosen: list[Choice] = []
        # How many of the replicas from each index on fit no slice, and the least that the others take.
        self._hopeless = _from_each_on([not self._doing(demand) for demand in replicas])
        self._least = _from_each_on([self._alone(demand) for demand in replicas])

    def go(self, index: int, missing: int, share: float) -> None:
        """Try all choices for the replicas from `index` on that may beat the best."""
        self._steps += 1
        at_least = missing + self._hopeless[index]
        no_less = at_least == self._missing and share + self._least[index] >= self._share - _EQUAL
        if self._steps > _MOST_STEPS or at_least > self._missing or no_less:
            return
        if index == len(self._replicas):
            self.best, self._missing, self._share = [*self._chosen], missing, share
            return
        demand = self._replicas[index]
        if demand.shares:
            self._beside_others(demand, index, missing, share)
        for kind, shelf in enumerate(self._shelves):
            if self._free[kind] and shelf.does(demand):
                self._free[kind] -= 1
                left = shelf.kind.memory_bytes - demand.memory_bytes if demand.shares else -1
                self._slices.append((kind, left))
                self._next(-1 - kind, index, missing, share + shelf.kind.share)
                self._slices.pop()
                self._free[kind] += 1
        self._next(None, index, missing + 1, share)

    def _beside_others(self, demand: Demand, index: int, missing: int, share: float) -> None:
        seen = set()
        for number, (kind, left) in enumerate(self._slices):
            if left >= demand.memory_bytes and self._shelves[kind].does(demand) and (kind, left) not in seen:
                seen.add((kind, left))
                self._slices[number] = kind, left - demand.memory_bytes
                self._next(number, index, missing, share)
                self._slices[number] = kind, left

    def _next(self, choice: Choice, index: int, missing: int, share: float) -> None:
        self._chosen.append(choice)
        self.go(index + 1, missing, share)
        self._chosen.pop()

    def _doing(self, demand: Demand) -> list[Shelf]:
        return [shelf for shelf in self._shelves if shelf.does(demand)]

    def _alone(self, demand: Demand) -> float:
        """Return the least of a GPU that a replica takes; 0 where it may share."""
        return 0.0 if demand.shares else min((shelf.kind.share for shelf in self._doing(demand)), default=0.0)


def _from_each_on(numbers: Sequence[float]) -> list[float]:
    """Return the sum of the numbers from each index on, and 0 at the end."""
    return [*accumulate(reversed(numbers), initial=0.0)][::-1]
