"""Pools of this machine: the replicas of each, and the services in it."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from integrations.clusters.base import Desired, DesiredRevision
from integrations.clusters.local.agent.pools.fetcher import PoolFetcher
from integrations.clusters.local.agent.pools.source import PoolSource
from integrations.clusters.local.agent.replicas.replica import Replica
from integrations.clusters.local.agent.replicas.workshop import Workshop
from integrations.clusters.local.envoy.values import Endpoint

Key = tuple[str, str]  # namespace and service
_LOADS_AT_ONCE = 8


@dataclass(slots=True)
class _Pool:
    """One pool.

    Attributes:
        replicas: of its running revisions, by the revision's name.
        services: those in it.
        settled: those of them that depend on nothing but whether a replica is ready.
        was_up: whether one was, when `followers` was called last.
        copies: of the models that several replicas are to answer for, by `<namespace>.<service>`.
        loading: bounds the loads that the agent asks for.
    """

    source: PoolSource | None = None
    replicas: dict[str, list[Replica]] = field(default_factory=dict)
    services: set[Key] = field(default_factory=set)
    settled: set[Key] = field(default_factory=set)
    was_up: bool = False
    copies: Mapping[str, int] = field(default_factory=dict)
    loading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_LOADS_AT_ONCE))


class Pools:
    """The pools by `namespace/name`."""

    def __init__(self) -> None:
        self._pools: dict[str, _Pool] = defaultdict(_Pool)

    def open(self, pool: str, revision: str, replicas: list[Replica], workshop: Workshop) -> PoolSource:
        """Take a revision of a pool that begins to run, and return the source of its models; raises OSError.

        Args:
            replicas: the revision's, which come and go.
        """
        its = self._pools[pool]
        its.replicas[revision] = replicas
        if its.source is None:
            its.source = PoolSource(PoolFetcher(workshop, pool.replace("/", ".")))
        return its.source

    async def close(self, pool: str, revision: str) -> None:
        """Forget a revision that has ended; with the last one the fetcher ends."""
        its = self._pools[pool]
        its.replicas.pop(revision, None)
        if its.source is not None and not its.replicas:
            source, its.source = its.source, None
            await source.remove()

    def join(self, pool: str, service: Key, *, is_settled: bool) -> None:
        """Take a service into a pool, which may be yet to start.

        Args:
            is_settled: only whether the pool has a ready replica makes a difference to it.
        """
        its = self._pools[pool]
        its.services.add(service)
        (its.settled.add if is_settled else its.settled.discard)(service)

    def leave(self, pool: str, service: Key) -> None:
        """Forget a service that is in the pool no longer."""
        self._pools[pool].services.discard(service)
        self._pools[pool].settled.discard(service)

    def take_copies(self, pool: Key, desired: Desired) -> set[Key]:
        """Take how many copies the models of a pool are to have, and return the services where that has changed."""
        found: dict[str, int] = {}
        for revision in desired.revisions:
            for model, number in revision.pool_copies.items():
                found[model] = max(number, found.get(model, 1))
        key = "/".join(pool)
        if not found and key not in self._pools:
            return set()
        before, self._pools[key].copies = self._pools[key].copies, found
        changed = {model for model in before.keys() | found.keys() if before.get(model) != found.get(model)}
        return {(namespace, service) for model in changed for namespace, _, service in [model.partition(".")]}

    def copies(self, pool: str, service: Key) -> int:
        """Return how many of the pool's replicas are to have the model of a service."""
        return self._pools[pool].copies.get(".".join(service), 1)

    def put(self, pool: str, model: str, revisions: Iterable[DesiredRevision]) -> None:
        """Make the pool's catalog say what the versions of a model are."""
        if (source := self._pools[pool].source) is not None:
            source.catalog.put(model, revisions)

    def is_open(self, pool: str) -> bool:
        """Return whether the pool has a fetcher."""
        return self._pools[pool].source is not None

    def endpoints(self, pool: str) -> tuple[Endpoint, ...]:
        """Return the addresses of the pool's replicas, by whose names requests are hashed to them."""
        return tuple(
            replace(each.endpoint, draining=not each.ready, name=each.name)
            for each in self.replicas(pool)
            if each.endpoint is not None
        )

    def loading(self, pool: str) -> asyncio.Semaphore:
        """Return what bounds how many models the agent has loaded by the pool at once."""
        return self._pools[pool].loading

    def replicas(self, pool: str) -> Sequence[Replica]:
        """Return the replicas that have an address; those that leave are not ready."""
        return [each for found in self._pools[pool].replicas.values() for each in found if each.endpoint is not None]

    def followers(self, touched: Iterable[Key]) -> set[Key]:
        """Return the services that depend on what has changed in those of the touched services that are pools."""
        found: set[Key] = set()
        for key in touched:
            if (name := "/".join(key)) in self._pools:
                its, is_up = self._pools[name], any(each.ready for each in self.replicas(name))
                found |= its.services if is_up != its.was_up else its.services - its.settled
                its.was_up = is_up
        return found


def is_same_but_copies(one: Desired, other: Desired) -> bool:
    """Return whether two desired states differ in the copies of a pool's models only."""
    return _without_copies(one) == _without_copies(other)


def _without_copies(desired: Desired) -> Desired:
    revisions = tuple(replace(each, pool_copies={}) for each in desired.revisions)
    return replace(desired, generation=0, revisions=revisions)
