"""Queue of turns: which service of which cluster is next. Not for several threads at once. Pure.

    offered --next--> has its turn --done--> out, or offered again where something happened meanwhile

Clusters share the turns: the next one is of the cluster that has the fewest now, and a cluster has at most half of what
the others leave, so that several that hang at once do not have all. Within a cluster services that move come first,
each lane in its order, and every fifth turn is of a settled one, so that neither lane waits for ever.
"""

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import count

_SETTLED_EVERY = 5


@dataclass
class _Lanes:
    """What one cluster's services wait for.

    Attributes:
        waiting: the ids in both lanes.
        running: the ids that have their turn, with whether they are to have another one.
        last: number of the choice that was the cluster's last.
    """

    moving: deque[int] = field(default_factory=deque)
    settled: deque[int] = field(default_factory=deque)
    waiting: set[int] = field(default_factory=set)
    running: dict[int, bool] = field(default_factory=dict)
    turns: int = 0
    last: int = 0

    def pop(self) -> int:
        self.turns += 1
        is_settleds = self.settled and (not self.moving or self.turns % _SETTLED_EVERY == 0)
        service = (self.settled if is_settleds else self.moving).popleft()
        self.waiting.discard(service)
        return service


class TurnQueue:
    """Turns that are due; `at_once` are the turns that the caller can have at once."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._clusters: dict[int, _Lanes] = {}
        self._numbers = count(1)

    def offer(self, cluster: int, service: int, *, is_settled: bool = False, is_hint: bool = False) -> None:
        """Let a service have a turn, unless it waits for one.

        Args:
            is_hint: something happened to it: where it has its turn right now, it gets another one.
        """
        lanes = self._clusters.setdefault(cluster, _Lanes())
        if service in lanes.running:
            lanes.running[service] |= is_hint
        elif service not in lanes.waiting:
            (lanes.settled if is_settled else lanes.moving).append(service)
            lanes.waiting.add(service)

    def next(self, clusters: Collection[int]) -> tuple[int, int] | None:
        """Return cluster and service of the next turn, which then has begun; None where none may begin.

        Args:
            clusters: those whose services may have turns now.
        """
        running = sum(len(lanes.running) for lanes in self._clusters.values())
        able = [
            (len(lanes.running), lanes.last, cluster)
            for cluster, lanes in self._clusters.items()
            if lanes.waiting and cluster in clusters and len(lanes.running) < self._share(running - len(lanes.running))
        ]
        if not able:
            return None
        _, _, cluster = min(able)
        lanes = self._clusters[cluster]
        lanes.last = next(self._numbers)
        service = lanes.pop()
        lanes.running[service] = False
        return cluster, service

    def done(self, cluster: int, service: int) -> None:
        """Note the end of a turn."""
        lanes = self._clusters.get(cluster)
        if lanes is not None and lanes.running.pop(service, False):
            self.offer(cluster, service)

    def leave(self, cluster: int) -> None:
        """Forget what waits of a cluster; its running turns end as they are."""
        lanes = self._clusters.get(cluster)
        if lanes is not None:
            for lane in (lanes.moving, lanes.settled, lanes.waiting):
                lane.clear()
            lanes.running = dict.fromkeys(lanes.running, False)

    def _share(self, of_others: int) -> int:
        """Return how many turns a cluster may have at once beside those of the others."""
        return (self._at_once - of_others) // 2 or (not of_others)

    def running(self, cluster: int) -> int:
        """Return how many turns of a cluster have begun and not ended."""
        lanes = self._clusters.get(cluster)
        return 0 if lanes is None else len(lanes.running)
