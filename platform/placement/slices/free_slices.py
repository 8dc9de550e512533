"""Free-slice index: shelves of equal slices, and the best node of each from a heap. Pure.

Each shelf has a heap by how many slices a node has left. When that changes the node is pushed again; outdated entries
are dropped when popped.
"""

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from integrations.clusters.base import Arrangement
from placement.slices.slice_types import Demand, Room


class Shelf:
    """Rooms of one product and profile, one per node."""

    def __init__(self, rooms: Sequence[Room], arrangement: Arrangement, left: Mapping[str, int]) -> None:
        """Take rooms that differ only in node and number.

        Args:
            left: free slices of each node, whatever their kind; the caller keeps it up to date, and reports changes.
        """
        self.kind = rooms[0]
        self.nodes = frozenset(room.node for room in rooms)
        self.free = sum(room.free for room in rooms)
        self._rooms = {room.node: room for room in rooms}
        self._taken: Counter[str] = Counter()
        self._left = left
        self._packs = arrangement is Arrangement.PACK
        self._heap: list[tuple[int, str]] = []
        for node in sorted(self.nodes):
            self.changed(node)

    def does(self, demand: Demand) -> bool:
        """Return whether a slice of this kind is large enough."""
        kind = self.kind
        return (
            kind.memory_bytes >= demand.memory_bytes
            and kind.compute_slices >= demand.compute_slices
            and demand.product in ("", kind.product)
            and demand.profile in ("", kind.profile)
        )

    def changed(self, node: str) -> None:
        """Record that a node's number of free slices changed."""
        if self._taken[node] < self._rooms[node].free:
            heapq.heappush(self._heap, (self._key(node), node))

    def take(self, replicas: Mapping[str, int]) -> tuple[Room, int] | None:
        """Return a room and the index of the slice taken; None where none is free.

        Args:
            replicas: how many replicas of the same model a node has already.
        """
        seen = []
        while self._heap:
            entry = heapq.heappop(self._heap)
            _, node = entry
            if entry[0] != self._key(node) or self._taken[node] >= self._rooms[node].free or entry in seen:
                continue
            seen.append(entry)
            if self._packs or not replicas.get(node):
                break
        self._put_back(seen)
        if not seen:
            return None
        _, node = seen[0] if self._packs else min(seen, key=lambda entry: (replicas.get(entry[1], 0), entry))
        self._taken[node] += 1
        return self._rooms[node], self._taken[node] - 1

    def _put_back(self, entries: Iterable[tuple[int, str]]) -> None:
        for entry in entries:
            heapq.heappush(self._heap, entry)

    def _key(self, node: str) -> int:
        return self._left[node] if self._packs else -self._left[node]
