"""Start-time fair queueing (Goyal, Vin, Cheng, 1996): callers take turns, by the rows that were served to each. Pure.

While all items have one caller, the queue is first in, first out. Else each caller has a lane, and the lane with the
lowest tag is next: the tag grows by the rows of each item that leaves the lane. A caller who comes back begins where
the service is now, so it waits for at most one item of each other lane, however long these are, and saves nothing up.

    lanes      greedy: g5 g6 g7 g8 ...    tag 6
               polite: p3                 tag 5  <- next

Lanes that are empty stay until the service has passed their tag: a caller gains nothing by waiting for an answer before
it sends its next request. Beyond a limit of callers, further ones share lanes by hash, so memory and time are bounded,
and a client that invents callers makes others wait about as long as a queue without lanes would. An item costs O(1)
with one caller, else O(log lanes); to look at all of them in order costs O(lanes) more.

An item that leaves early stays in its lane as an empty shell until it reaches the front; no lane begins with one.
"""

import heapq
from collections import deque
from collections.abc import Iterator
from operator import attrgetter
from typing import Generic, Protocol, TypeVar

OWN_LANES, SHARED_LANES = 256, 768
"""Limits of one queue: lanes of one caller each, and lanes of the callers beyond them."""

SHARED = b"\0"
"""Begins the names of shared lanes, and no caller's."""


class Waiting(Protocol):
    """An item of the queue.

    Attributes:
        caller: who sent it; the name of the lane once it is in a shared one.
        rows: its cost, 1 or more.
        waiting: False once it has left early.
    """

    caller: bytes
    waiting: bool

    @property
    def rows(self) -> int: ...


Item = TypeVar("Item", bound=Waiting)

_is_waiting = attrgetter("waiting")


class _Lane(Generic[Item]):
    """The items of one caller, in the order of arrival.

    Attributes:
        size: of them without shells; kept only beside other lanes.
    """

    __slots__ = ("caller", "items", "size")

    def __init__(self, caller: bytes, items: deque[Item]) -> None:
        self.caller = caller
        self.items = items
        self.size = 0


class FairQueue(Generic[Item]):
    """Waiting items: `pop` takes them in fair order, which a loop shows."""

    def __init__(self, own_lanes: int = OWN_LANES, shared_lanes: int = SHARED_LANES) -> None:
        self._own_lanes = own_lanes
        self._shared_lanes = shared_lanes
        self._caller = b""  # of all items, while they have one
        self._items: deque[Item] | None = deque()  # all, while they have one caller
        self._tag = 0  # of their lane, if there were others
        self._lanes: dict[bytes, _Lane[Item]] = {}  # empty while all items have one caller
        self._order: list[tuple[int, int, _Lane[Item]]] = []  # a heap: tag, number of the turn, lane
        self._now = 0  # the tag of the last lane that was served
        self._turn = 0
        self._by_size: dict[int, dict[_Lane[Item], None]] = {}
        self._longest = 0
        self._shells = 0

    def push(self, item: Item) -> None:
        """Append an item to its caller's lane."""
        items = self._items
        if items is not None:
            if not items:
                self._caller = item.caller
                self._tag = 0
            elif item.caller != self._caller:
                self._part(items)
                self._append(item)
                return
            items.append(item)
            return
        self._append(item)

    def _append(self, item: Item) -> None:
        name = self._lane_name(item.caller)
        lane = self._lanes.get(name) or self._open(name)
        item.caller = name
        lane.items.append(item)
        self._resize(lane, 1)

    def pop(self, count: int) -> list[Item]:
        """Take out the first `count` items."""
        items = self._items
        if items is None:
            return self._pop_in_turns(count)
        self._tag = 1
        if self._shells:
            return self._pop_past_shells(items, count)
        if count >= len(items):
            found = list(items)
            items.clear()
            return found
        return [items.popleft() for _ in range(count)]

    def __iter__(self) -> Iterator[Item]:
        """Return the items in the order in which they would leave now."""
        items = self._items
        if items is None:
            return self._in_turns()
        return filter(_is_waiting, items) if self._shells else iter(items)

    def discard(self, item: Item) -> None:
        """Note that an item leaves early."""
        item.waiting = False
        self._shells += 1
        if self._items is not None:
            self._drop_shells(self._items)
        else:
            self._left(self._lanes[item.caller])

    def remove(self, item: Item) -> None:
        """Take an item out that goes on waiting elsewhere; costs the length of its lane."""
        if self._items is not None:
            self._items.remove(item)
            self._drop_shells(self._items)
        else:
            lane = self._lanes[item.caller]
            lane.items.remove(item)
            self._left(lane)

    @property
    def longest(self) -> int:
        """Return the number of items in the longest lane."""
        return self._longest if self._items is None else len(self._items) - self._shells

    def size_of(self, caller: bytes) -> int:
        """Return the number of items in a caller's lane."""
        if self._items is not None:
            return self.longest if caller == self._caller else 0
        lane = self._lanes.get(self._lane_name(caller))
        return lane.size if lane is not None else 0

    def pop_newest(self) -> Item:
        """Take out the newest item of the longest lane; there must be an item."""
        if self._items is not None:
            return self._pop_last(self._items)
        lane = next(iter(self._by_size[self._longest]))
        item = self._pop_last(lane.items)
        self._left(lane)
        return item

    def _pop_last(self, items: deque[Item]) -> Item:
        while not items[-1].waiting:
            items.pop()
            self._shells -= 1
        return items.pop()

    # With one caller

    def _pop_past_shells(self, items: deque[Item], count: int) -> list[Item]:
        found: list[Item] = []
        while items and len(found) < count:
            found.append(items.popleft())
            self._drop_shells(items)
        return found

    def _part(self, items: deque[Item]) -> None:
        """Begin to keep lanes: a second caller comes."""
        lane = _Lane(self._caller, items)
        lane.size = self._longest = len(items) - self._shells
        self._items = None
        self._lanes[lane.caller] = lane
        self._by_size[lane.size] = {lane: None}
        self._now = self._turn = 0
        self._order.append((self._tag, 0, lane))

    def _join(self, lane: _Lane[Item]) -> None:
        """End keeping lanes: `lane` has all items, if there are any."""
        self._items, self._caller, self._tag = lane.items, lane.caller, 1
        self._lanes.clear()
        self._order.clear()
        self._by_size.clear()

    # With several callers

    def _lane_name(self, caller: bytes) -> bytes:
        """Return the name of the lane for a caller's next item."""
        if caller in self._lanes or len(self._lanes) < self._own_lanes:
            return caller
        return b"%b%d" % (SHARED, hash(caller) % self._shared_lanes)

    def _open(self, name: bytes) -> _Lane[Item]:
        """Return a new lane."""
        lane = self._lanes[name] = _Lane(name, deque())
        self._turn += 1
        heapq.heappush(self._order, (self._now, self._turn, lane))
        self._by_size.setdefault(0, {})[lane] = None
        return lane

    def _pop_in_turns(self, count: int) -> list[Item]:
        found: list[Item] = []
        order = self._order
        while self._longest and len(found) < count:
            tag, _, lane = order[0]
            if not lane.items:
                heapq.heappop(order)
                self._close(lane)
                continue
            item = lane.items.popleft()
            self._now = tag
            self._turn += 1
            heapq.heapreplace(order, (tag + item.rows, self._turn, lane))
            self._drop_shells(lane.items)
            self._resize(lane, -1)
            found.append(item)
        if not self._longest or len(order) == 1:
            self._join(order[0][2])
        return found

    def _in_turns(self) -> Iterator[Item]:
        order, turn = self._order.copy(), self._turn
        lines: dict[_Lane[Item], Iterator[Item]] = {}
        while order:
            tag, _, lane = order[0]
            line = lines.get(lane)
            if line is None:
                line = lines[lane] = filter(_is_waiting, lane.items)
            item = next(line, None)
            if item is None:
                heapq.heappop(order)
                continue
            turn += 1
            heapq.heapreplace(order, (tag + item.rows, turn, lane))
            yield item

    def _close(self, lane: _Lane[Item]) -> None:
        """Forget an empty lane, whose tag the service has passed."""
        del self._lanes[lane.caller]
        del self._by_size[0][lane]

    def _left(self, lane: _Lane[Item]) -> None:
        """Note that an item has left a lane out of turn."""
        self._drop_shells(lane.items)
        self._resize(lane, -1)
        if not self._longest:
            self._join(lane)

    def _resize(self, lane: _Lane[Item], by: int) -> None:
        """Note that a lane has one item more or less."""
        alike = self._by_size[lane.size]
        del alike[lane]
        lane.size += by
        self._by_size.setdefault(lane.size, {})[lane] = None
        if not alike:
            del self._by_size[lane.size - by]
        if by > 0:
            self._longest = max(self._longest, lane.size)
        elif self._longest not in self._by_size:
            self._longest -= 1

    def _drop_shells(self, items: deque[Item]) -> None:
        """Drop the shells at the front of a lane."""
        while items and not items[0].waiting:
            items.popleft()
            self._shells -= 1
