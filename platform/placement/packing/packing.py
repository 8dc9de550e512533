"""Bin packing of replicas onto slices: best fit, the largest first. Pure.

A replica goes to the slice that suffices and takes the least of a GPU, so that the rest is of most use; replicas that
may share a slice first fill the fullest one with room. For a few replicas every order is tried, then a search for a
better packing (`exact_packing.py`); with many the orders differ by less than it costs to try them.
"""

import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import permutations

from integrations.clusters.base import Arrangement
from placement.packing.exact_packing import MOST_REPLICAS, better
from placement.slices.free_slices import Shelf
from placement.slices.slice_types import Demand, Packing, Placement, Room

_FEW = 5  # every order of so many demands is tried: 120


def pack(demands: Sequence[Demand], rooms: Sequence[Room], arrangement: Arrangement = Arrangement.PACK) -> Packing:
    """Return where replicas go; replicas without a slice are in `missing`."""
    largest = sorted(demands, key=lambda each: (each.compute_slices, each.memory_bytes, each.name), reverse=True)
    orders = permutations(largest) if len(largest) <= _FEW else [largest]
    tries = (_Run(rooms, arrangement, shares_large=large).take(order) for order in orders for large in (False, True))
    found = min(tries, key=_cost)
    is_greedy_best = len(demands) == 1 and not demands[0].shares
    if is_greedy_best or sum(each.replicas for each in demands) > MOST_REPLICAS:
        return found
    return _Run(rooms, arrangement).better(largest, found) or found


def _cost(found: Packing) -> tuple[int, float]:
    return sum(found.missing.values()), found.share


class _Run:
    """One pass over the demands."""

    def __init__(self, rooms: Iterable[Room], arrangement: Arrangement, *, shares_large: bool = False) -> None:
        kinds: dict[tuple[float, int, int, str, str], list[Room]] = defaultdict(list)
        self._left: Counter[str] = Counter()
        for room in rooms:
            if room.free > 0:
                kind = (room.share, room.memory_bytes, room.compute_slices, room.product, room.profile)
                kinds[kind].append(room)
                self._left[room.node] += room.free
        self._shelves = [Shelf(kinds[kind], arrangement, self._left) for kind in sorted(kinds)]
        # For sharing, a slice with more memory per fraction of the GPU may be better than the smallest that suffices.
        by_memory = sorted(self._shelves, key=lambda shelf: shelf.kind.share / shelf.kind.memory_bytes)
        self._to_share = by_memory if shares_large else self._shelves
        # Shared slices: free bytes of each, ascending, by the demands that may be on it.
        self._open: dict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
        self._shared: list[tuple[Room, int]] = []
        self._share = 0.0

    def take(self, demands: Iterable[Demand]) -> Packing:
        placements: list[Placement] = []
        missing: dict[str, int] = {}
        for demand in demands:
            replicas: Counter[str] = Counter()
            for number in range(demand.replicas):
                found = self._beside_others(demand) if demand.shares else self._alone(demand, replicas)
                if found is None:
                    missing[demand.name] = demand.replicas - number
                    break
                room, index = found
                replicas[room.node] += 1
                placements.append(Placement(demand.name, room.node, room.profile, index))
        return Packing(tuple(placements), missing, self._share)

    def better(self, demands: Sequence[Demand], found: Packing) -> Packing | None:
        """Return a better packing of a few replicas than `found`; None where there is no better one."""
        replicas = [demand for demand in demands for _ in range(demand.replicas)]
        choices = better(replicas, self._shelves, _cost(found))
        if choices is None:
            return None
        placements: list[Placement] = []
        missing: Counter[str] = Counter()
        on_nodes: dict[str, Counter[str]] = defaultdict(Counter)
        for demand, choice in zip(replicas, choices, strict=True):
            if choice is None:
                missing[demand.name] += 1
                continue
            if choice < 0 and (taken := self._taken(self._shelves[-1 - choice], on_nodes[demand.name])):
                self._shared.append(taken)
            room, index = self._shared[max(choice, -1)]
            on_nodes[demand.name][room.node] += 1
            placements.append(Placement(demand.name, room.node, room.profile, index))
        return Packing(tuple(placements), dict(missing), self._share)

    def _alone(self, demand: Demand, replicas: Counter[str]) -> tuple[Room, int] | None:
        for shelf in self._to_share if demand.shares else self._shelves:
            if shelf.does(demand) and (found := self._taken(shelf, replicas)) is not None:
                return found
        return None

    def _taken(self, shelf: Shelf, replicas: Counter[str]) -> tuple[Room, int] | None:
        """Take a slice of a shelf and return it; None where none is free."""
        found = shelf.take(replicas)
        if found is not None:
            room, _ = found
            self._share += room.share
            self._left[room.node] -= 1
            for each in self._shelves:
                if room.node in each.nodes:
                    each.changed(room.node)
        return found

    def _beside_others(self, demand: Demand) -> tuple[Room, int] | None:
        """Put the replica on the fullest slice with room for it, or on an unused one."""
        fullest: tuple[tuple[int, int], list[tuple[int, int]], int] | None = None
        for (product, compute_slices), left in self._open.items():
            if compute_slices >= demand.compute_slices and demand.product in ("", product):
                at = bisect.bisect_left(left, (demand.memory_bytes, -1))
                if at < len(left) and (fullest is None or left[at] < fullest[0]):
                    fullest = left[at], left, at
        if fullest is not None:
            (left_bytes, number), left, at = fullest
            del left[at]
        else:
            found = self._alone(demand, Counter())
            if found is None:
                return None
            left_bytes, number = found[0].memory_bytes, len(self._shared)
            self._shared.append(found)
        room, index = self._shared[number]
        bisect.insort(self._open[room.product, room.compute_slices], (left_bytes - demand.memory_bytes, number))
        return room, index
