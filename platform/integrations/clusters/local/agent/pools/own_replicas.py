"""Own replicas of a revision in a pool, which its load has earned: they answer in place of the pool.

    pool answers --one is ready--> they answer --none desired, the pool has loaded its model--> pool answers, they end
         ^                            |
         '------none is ready---------'

The routes move first in both directions: the replicas leave once the gateway has had the time to follow.
"""

import asyncio
from dataclasses import replace

from integrations.clusters.base import DesiredRevision
from integrations.clusters.local.agent.pools.pooled_revision import PooledRevision
from integrations.clusters.local.agent.running_revision import RunningRevision
from integrations.clusters.local.agent.timing import Timing


def as_own(revision: DesiredRevision) -> DesiredRevision:
    """Return a revision in a pool as its own replicas run it; their clusters have names of their own."""
    return replace(revision, replicas=revision.own_replicas, slept_at=revision.own_since)


class OwnReplicas:
    """Own replicas of one revision in a pool.

    Attributes:
        running: the replicas.
        serve: they answer, not the pool.
    """

    def __init__(self, running: RunningRevision, timing: Timing, *, serve: bool = False) -> None:
        """Take them up; `serve` if they answered below an earlier agent."""
        self.running = running
        self.serve = serve
        self._timing = timing
        self._serve_until = float("-inf")

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left of them."""
        return self.running.is_over

    def follow(self, wanted: int, pooled: PooledRevision | None, *, held: bool = False) -> None:
        """Bring them to the wanted number, and decide who answers.

        Args:
            pooled: their revision in its pool; None where that is desired no longer.
            held: none may leave yet.
        """
        now = asyncio.get_running_loop().time()
        ready = self.running.ready
        if pooled is None:
            self.serve = self.serve and ready > 0
        elif self.serve and not ready:
            self.serve = False
            pooled.take_over()
        elif wanted and ready:
            self.serve = True
        elif self.serve and pooled.ready:
            self.serve = False
            self._serve_until = now + self._timing.gateway_s
            pooled.changes_in(self._timing.gateway_s)
        if pooled is not None:
            pooled.is_spare = self.serve and wanted > 0
        stay = held or (pooled is not None and (self.serve or now < self._serve_until))
        self.running.scale(max(wanted, self.running.present) if stay and not wanted else wanted, held=held)
