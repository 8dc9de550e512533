"""A revision with replicas of its own on this machine, those of a model pool included."""

from collections.abc import Sequence
from dataclasses import replace

from integrations.clusters.base import DesiredRevision, ObservedReplica
from integrations.clusters.flags import allows_python
from integrations.clusters.local.agent.pools.members import Pools
from integrations.clusters.local.agent.replicas.model_source import ModelSource
from integrations.clusters.local.agent.replicas.replica import EarlierReplica, Replica
from integrations.clusters.local.agent.replicas.workshop import Workshop
from integrations.clusters.local.envoy.values import RevisionEndpoints
from integrations.clusters.local.model_repository import Repository
from integrations.clusters.local.payloads import RevisionTap


class RunningRevision:
    """A revision with its replicas; it lives until the last of them has ended, desired or not."""

    def __init__(
        self,
        workshop: Workshop,
        pools: Pools,
        namespace: str,
        revision: DesiredRevision,
        earlier: Sequence[EarlierReplica] = (),
    ) -> None:
        self.revision = revision
        self.replicas: list[Replica] = []
        self.was_ready = False
        self.mirrored = False
        self.slept_at = revision.slept_at or 0.0
        self._is_known = not self.slept_at
        self._workshop = workshop
        self._namespace = namespace
        self._pools = pools
        self._source: ModelSource
        if revision.is_pool:
            self._source = pools.open(self._pool, revision.name, self.replicas, workshop)
        else:
            self._source = Repository(
                revision,
                workshop.layout.repositories / f"{namespace}.{revision.name}",
                with_code=allows_python(workshop.runtime),
                made=bool(earlier),
            )
        # The model's name is the service's.
        self.tap = RevisionTap(
            workshop.layout.payloads_of(namespace, revision.model_name) / revision.name, workshop.files
        )
        for each in earlier:
            self.replicas.append(
                Replica(workshop, namespace, each.revision, each.index, self._source, tap=self.tap, earlier=each)
            )
        self.was_ready = self.ready > 0

    @property
    def ready(self) -> int:
        return sum(replica.ready for replica in self.replicas)

    @property
    def is_waking(self) -> bool:
        """Return whether it has yet to be ready for the first time since it slept.

        For so long its clusters are kept from the gateway, where requests wait for them.
        """
        if not self._is_known:
            self._is_known = self.ready > 0 or all(each.leaving for each in self.replicas)
        return not self._is_known

    @property
    def why_failed(self) -> str:
        """Return why a replica failed, one sentence; empty where one is ready or none did."""
        if self.ready:
            return ""
        return next((found.failure.message for found in self.observed() if found.failure is not None), "")

    def scale(self, wanted: int, *, held: bool = False) -> None:
        """Start missing replicas and retire surplus ones, first those not ready, then the highest numbers.

        Replicas of an earlier `restart_number` are replaced one after the other, unless they are `held`: one more is
        started, and where all new ones are ready an old one goes. Their number never falls below `wanted`.
        """
        for replica in [replica for replica in self.replicas if replica.ended]:
            self.replicas.remove(replica)
        self.was_ready = wanted > 0 and (self.was_ready or self.ready > 0)
        staying = [replica for replica in self.replicas if not replica.leaving]
        wanted += bool(wanted and not held and self._makes_room(staying, wanted))
        for replica in sorted(staying, key=self._comes_first)[wanted:]:
            replica.leave()
        for _ in range(wanted - len(staying)):
            taken = {replica.index for replica in self.replicas}
            index = next(number for number in range(len(taken) + 1) if number not in taken)
            self.replicas.append(
                Replica(self._workshop, self._namespace, self.revision, index, self._source, tap=self.tap)
            )

    async def remove(self) -> None:
        """Remove its files, once no replica runs any more."""
        await self.tap.remove()
        if self.revision.is_pool:
            await self._pools.close(self._pool, self.revision.name)
        else:
            await self._source.remove()

    @property
    def present(self) -> int:
        """Return how many replicas there are, ready or not."""
        return len(self.replicas)

    @property
    def is_over(self) -> bool:
        """Return whether nothing is left of it."""
        return not self.replicas

    def observed(self) -> tuple[ObservedReplica, ...]:
        """Return its replicas as they are."""
        return tuple(replica.observed() for replica in self.replicas)

    @property
    def _pool(self) -> str:
        return f"{self._namespace}/{self.revision.model_name}"

    def _makes_room(self, staying: list[Replica], wanted: int) -> bool:
        """Return whether to run one more than wanted: old ones exist, and the newest is not ready yet."""
        new = [replica for replica in staying if not self._is_old(replica)]
        if len(new) == len(staying):
            return False
        if len(staying) > wanted:
            return not all(replica.ready for replica in new)
        return len(staying) == len(self.replicas)  # the one before has gone for good

    def _is_old(self, replica: Replica) -> bool:
        return replica.restart_number < self.revision.restart_number

    def _comes_first(self, replica: Replica) -> tuple[bool, bool, int]:
        return (not replica.ready, self._is_old(replica), replica.index)

    def endpoints(self) -> RevisionEndpoints:
        """Return the addresses of the replicas that run."""
        found = tuple(
            replace(replica.endpoint, draining=not replica.ready)
            for replica in self.replicas
            if replica.endpoint is not None
        )
        return RevisionEndpoints(
            self._namespace, self.revision.name, found, mirrored=self.mirrored, slept_at=self.slept_at
        )
