"""What a turn to a service came to, for as long as neither its objects nor its desired state change.

With a cache, a turn that finds everything as the one before left it renders nothing and compares nothing. Once in a
while it does, since the gateway's class and the clock are not among what is compared.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from integrations.clusters.base import Desired, Drift, Observed, ReplicaPhase
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.client import Api
from integrations.clusters.kubernetes.apply.own_replicas import written_at
from integrations.clusters.kubernetes.apply.ownership_configmap import POOL
from integrations.clusters.kubernetes.manifests import policies
from integrations.clusters.kubernetes.manifests.names import ledger_name, pool_at
from integrations.clusters.kubernetes.manifests.routes.own_replicas import SETTLES_S
from integrations.clusters.kubernetes.options import Options
from integrations.clusters.kubernetes.watches.cached_api import CachedApi

_MOST = 2_000
_FOR_S = 600.0
_READ = (
    *resource_types.PRUNED,
    resource_types.CONFIG_MAP,
    resource_types.POD,
    resource_types.ENDPOINT_SLICE,
)
_RESTS = (ReplicaPhase.READY, ReplicaPhase.DRAINING)
_Mark = tuple[int, int]
_Marks = tuple[_Mark, ...]


@dataclass(frozen=True, slots=True)
class _Kept:
    of: Any
    mark: _Marks
    until: float


class Unchanged:
    """Passes calls on where something changed since the last one. For several threads at once."""

    def __init__(self, api: Api, options: Options, clock: Callable[[], float] = time.monotonic) -> None:
        self._cache = api.cache if isinstance(api, CachedApi) else None
        self._needed = (*_READ, *((resource_types.SCALED_OBJECT,) if options.keda is not None else ()))
        self._clock = clock
        self._applied: OrderedDict[tuple[str, str], _Kept] = OrderedDict()
        self._observed: OrderedDict[tuple[str, str], _Kept] = OrderedDict()

    def applied(self, desired: Desired, apply: Callable[[Desired], list[Drift]]) -> list[Drift]:
        """Return what `apply` returns; it is not called where it changed nothing the last time, and nothing changed."""
        key = (desired.namespace, desired.service)
        guarded = resource_types.POLICIES if policies(desired) else ()
        mark = self._mark(key, guarded)
        if mark is not None and self._has(self._applied, key, mark) and self._applied[key].of == desired:
            return []
        found = apply(desired)
        if mark is not None and not found and self._mark(key, guarded) == mark and not self._waits(key):
            self._keep(self._applied, key, _Kept(desired, mark, self._clock() + _FOR_S))
        return found

    def observed(self, namespace: str, service: str, observe: Callable[[str, str], Observed]) -> Observed:
        """Return what `observe` returns, or returned for the same objects where all replicas are well."""
        key = (namespace, service)
        mark = self._mark(key, resource_types.POLICIES)
        kept = self._observed.get(key)
        if mark is not None and kept is not None and kept.mark == mark and kept.until > self._clock():
            found: Observed = kept.of
            return found
        seen = observe(namespace, service)
        if mark is not None and _is_well(seen):
            self._keep(self._observed, key, _Kept(seen, mark, self._clock() + _FOR_S))
        return seen

    def mark(self, namespace: str, service: str) -> object:
        """Return a value that changes with the service's objects; None where not all of them are watched."""
        return self._mark((namespace, service), resource_types.POLICIES)

    def _mark(self, key: tuple[str, str], more: tuple[resource_types.Kind, ...]) -> _Marks | None:
        """Return the marks of a service and of its pool, whose replicas are as its own."""
        if self._cache is None:
            return None
        namespace, service = key
        found = [self._cache.mark(namespace, service, (*self._needed, *more))]
        entry = self._cache.get(resource_types.CONFIG_MAP, namespace, ledger_name(service))
        if pool := (entry or {}).get("data", {}).get(POOL):
            found.append(self._cache.mark(*pool_at(pool, namespace), self._needed))
        marks = tuple(each for each in found if each is not None)
        return marks if len(marks) == len(found) else None

    def _waits(self, key: tuple[str, str]) -> bool:
        """Return whether its requests move between a pool and own replicas, by routes that were written just now."""
        route = None if self._cache is None else self._cache.get(resource_types.HTTP_ROUTE, *key)
        return route is not None and 0 <= time.time() - written_at(key[1], [route]) < 2 * SETTLES_S

    def _has(self, kept: "OrderedDict[tuple[str, str], _Kept]", key: tuple[str, str], mark: _Marks) -> bool:
        found = kept.get(key)
        return found is not None and found.mark == mark and found.until > self._clock()

    def _keep(self, kept: "OrderedDict[tuple[str, str], _Kept]", key: tuple[str, str], value: _Kept) -> None:
        kept[key] = value
        kept.move_to_end(key)
        while len(kept) > _MOST:
            kept.popitem(last=False)


def _is_well(seen: Observed) -> bool:
    """Return whether no replica's failure depends on more than the objects, such as events, logs and the time."""
    return all(
        replica.phase in _RESTS for revision in seen.revisions for replica in (*revision.all_replicas, *revision.own)
    )
