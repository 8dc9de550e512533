"""Service state on this machine: desired and running replicas, and their routing for the gateway."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import replace

from integrations.clusters.base import (
    Desired,
    DesiredRevision,
    Observed,
    ObservedRevision,
    ReplicaPhase,
)
from integrations.clusters.local.agent.pools.members import Pools
from integrations.clusters.local.agent.pools.own_replicas import OwnReplicas, as_own
from integrations.clusters.local.agent.pools.pooled_revision import PooledRevision
from integrations.clusters.local.agent.replicas.replica import EarlierReplica, Replica
from integrations.clusters.local.agent.replicas.workshop import Workshop
from integrations.clusters.local.agent.running_revision import RunningRevision
from integrations.clusters.local.envoy.names import is_of
from integrations.clusters.local.envoy.values import Backend, RevisionEndpoints, ServiceRoute
from integrations.clusters.weight_distribution import Claim, explanation, is_first_start, shares

_READY = ReplicaPhase.READY
_LONGEST_REASON = 500


class Service:
    """A service as the agent runs it. All methods are quick; replicas run in their own tasks.

    Attributes:
        shares_clusters: whether services at rest in a pool use its clusters; no gateway of an older release can.
    """

    def __init__(self, workshop: Workshop, pools: Pools, namespace: str, name: str) -> None:
        self.namespace = namespace
        self.name = name
        self.desired = Desired(namespace, name, 0, ())
        self.deleted = False
        self.shares_clusters = True
        self.complaint = ""
        self._workshop = workshop
        self._pools = pools
        self._running: dict[str, RunningRevision | PooledRevision] = {}
        self._own: dict[str, OwnReplicas] = {}  # of revisions in pools
        self._routed: dict[str, int] = {}
        self._is_refusing = False
        self._removals: set[asyncio.Task[None]] = set()
        self._in: set[str] = set()  # pools
        self._loaded: set[str] = set()  # by pools, when an earlier agent looked
        self._woken: dict[str, tuple[float, float]] = {}  # by revision, since when it slept, and when it was woken

    @property
    def gone(self) -> bool:
        """Return whether it was deleted and has no replicas left."""
        return self.deleted and not self._running and not self._own and not self._removals

    def take(self, desired: Desired, *, deleted: bool) -> None:
        """Take up a newer desired state; an older one is ignored."""
        if desired.generation >= self.desired.generation:
            self.desired, self.deleted = desired, deleted

    def take_up(self, earlier: Sequence[EarlierReplica], was: Observed | None) -> None:
        """Go on with the replicas of an earlier agent, desired or not; `was` is that agent's last status."""
        for name in {each.revision.name for each in earlier}:
            its = [each for each in earlier if each.revision.name == name]
            newest = max(its, key=lambda each: each.revision.restart_number).revision
            running = RunningRevision(self._workshop, self._pools, self.namespace, newest, its)
            seen = was.revision(name) if was is not None else None
            if newest.pool:
                served = seen is not None and not seen.pooled_as
                self._own[name] = OwnReplicas(running, self._workshop.timing, serve=served)
                continue
            self._running[name] = running
            running.mirrored = newest.mirror_percent > 0 or (seen is not None and seen.mirror_percent > 0)
        if was is not None:
            self._loaded = {each.name for each in was.revisions if each.weight_percent}
            self._routed = {each.name: each.weight_percent for each in was.revisions if each.weight_percent}
            self._woken = {
                each.name: (each.slept_at, each.woken_at) for each in was.revisions if each.slept_at and each.woken_at
            }

    def wake(self, cluster: str, now: float) -> bool:
        """Wake the revision that has slept and for whose cluster requests wait; return whether one has."""
        for revision in () if self.deleted else self.desired.revisions:
            slept_at = revision.slept_at or 0.0
            is_asleep = slept_at and not revision.replicas and self._slept_from(revision.name) != slept_at
            if is_asleep and is_of(cluster, self.namespace, revision.name, slept_at):
                self._woken[revision.name] = slept_at, now
                return True
        return False

    def stay_awake(self, now: float) -> None:
        """Wake whatever is asleep, since the gateway of an older release holds no requests."""
        for revision in self.desired.revisions:
            if revision.slept_at and not revision.replicas and self._slept_from(revision.name) != revision.slept_at:
                self._woken[revision.name] = revision.slept_at, now

    def _slept_from(self, revision: str) -> float:
        """Return since when the revision slept when it was woken last; 0 where it never was."""
        return self._woken.get(revision, (0.0, 0.0))[0]

    def _replicas(self, revision: DesiredRevision) -> int:
        """Return how many replicas are desired, of one that was woken at least one."""
        is_woken = bool(revision.slept_at) and self._slept_from(revision.name) == revision.slept_at
        return max(revision.replicas, int(is_woken))

    def _waits(self, revision: DesiredRevision) -> bool:
        """Return whether its requests wait in the gateway for a replica."""
        if not revision.slept_at or not revision.weight_percent or revision.pool:
            return False
        running = self._running.get(revision.name)
        if isinstance(running, RunningRevision) and running.slept_at == revision.slept_at:
            return running.is_waking and not running.why_failed
        return True

    def scale(self) -> None:
        """Bring each revision to its desired number of replicas, once a desired state could be read."""
        if self.complaint and not self.desired.generation:
            return
        wanted = {} if self.deleted else {revision.name: revision for revision in self.desired.revisions}
        for name, revision in wanted.items():
            if name not in self._running and self._replicas(revision) and not self._removals:
                self._running[name] = self._begun(revision)
        held = self._held()
        for name, running in list(self._running.items()):
            running.mirrored |= name in wanted and wanted[name].mirror_percent > 0
            same = name in wanted and _what_never_changes(wanted[name]) == _what_never_changes(running.revision)
            same = same and running.slept_at == (wanted[name].slept_at or 0.0)
            replicas = self._replicas(wanted[name]) if same else 0
            if same:
                running.revision = wanted[name]
            if isinstance(running, PooledRevision):
                self._keep_own(name, running if replicas else None, held=bool(held.get(name)))
            if isinstance(running, RunningRevision):
                running.tap.switch(wanted[name].tap if same else None, asyncio.get_running_loop().time())
            if held.get(name):
                running.scale(max(replicas, running.present), held=True)
            else:
                running.scale(replicas)
            if running.is_over:
                del self._running[name]
                self._remove(running)
        for name in [name for name in self._own if name not in self._running]:
            self._keep_own(name, None)
        self._let_rest()
        self._keep_catalogs()

    def _keep_own(self, name: str, pooled: PooledRevision | None, *, held: bool = False) -> None:
        """Bring the own replicas of a revision in a pool to their desired number; None where it is no longer in it."""
        own, wanted = self._own.get(name), None if pooled is None else as_own(pooled.revision)
        if own is None and wanted is not None and wanted.replicas and not self._removals:
            running = RunningRevision(self._workshop, self._pools, self.namespace, wanted)
            own = self._own[name] = OwnReplicas(running, self._workshop.timing)
        if own is None:
            return
        same = wanted is not None and _what_never_changes(wanted) == _what_never_changes(own.running.revision)
        if same and wanted is not None and own.running.slept_at == wanted.slept_at:
            own.running.revision = wanted
            own.follow(wanted.replicas, pooled, held=held)
        else:
            own.follow(0, pooled, held=held)
        if own.is_over:
            self._remove(self._own.pop(name).running)

    def _serving(self, name: str) -> RunningRevision | None:
        """Return the own replicas that answer for a revision in a pool; None where the pool does, or it is in none."""
        own = self._own.get(name)
        return own.running if own is not None and own.serve else None

    def _remove(self, running: RunningRevision | PooledRevision) -> None:
        removal = asyncio.create_task(running.remove())
        self._removals.add(removal)
        removal.add_done_callback(self._removed)

    def _let_rest(self) -> None:
        """Have a revision that alone has all requests, from a pool, use the pool's own clusters."""
        desired = self.desired
        weights = [each.weight_percent for each in desired.revisions]
        is_plain = weights == [100] and not desired.preview and desired.affinity is None and not self.deleted
        for running in self._running.values():
            if isinstance(running, PooledRevision):
                running.rests = self.shares_clusters and is_plain and len(self._running) == 1

    def _begun(self, revision: DesiredRevision) -> RunningRevision | PooledRevision:
        if not revision.pool:
            return RunningRevision(self._workshop, self._pools, self.namespace, revision)
        timing, changed = self._workshop.timing, self._workshop.changed
        is_loaded = revision.name in self._loaded
        return PooledRevision(
            self._pools, self.namespace, revision, timing=timing, changed=changed, is_loaded=is_loaded
        )

    def _keep_catalogs(self) -> None:
        """Have the catalogs of pools say which versions this service has in each, those that leave too."""
        found: dict[str, list[DesiredRevision]] = {pool: [] for pool in self._in}
        for running in self._running.values():
            if isinstance(running, PooledRevision):
                found.setdefault(running.revision.pool, []).append(running.revision)
        key = self.namespace, self.name
        is_settled = all(isinstance(each, PooledRevision) and each.is_settled for each in self._running.values())
        for pool, its in found.items():
            self._pools.put(pool, f"{self.namespace}.{self.name}", its)
            if its:
                self._pools.join(pool, key, is_settled=is_settled and not self._own)
            else:
                self._pools.leave(pool, key)
        self._in = {pool for pool, its in found.items() if its}

    def endpoints(self) -> Iterator[RevisionEndpoints]:
        """Yield the addresses of every running revision that the gateway is to know."""
        key = f"{self.namespace}/{self.name}"
        if any(running.revision.is_pool for running in self._running.values()):
            yield RevisionEndpoints(self.namespace, self.name, self._pools.endpoints(key), pooled=True)
        # Known to the gateway before the first is ready, since its routes may name no unknown clusters.
        yield from (own.running.endpoints() for own in self._own.values())
        for running in self._running.values():
            if isinstance(running, PooledRevision) and running.rests:
                continue
            if not running.is_waking:
                yield running.endpoints()
            elif running.why_failed and self._is_refusing:  # lets the requests go that wait for its cluster
                yield replace(running.endpoints(), why_failed=self._unserved())

    def route(self) -> ServiceRoute:
        """Return the service's desired route."""
        held = self._held()
        self._routed = held or shares(self._claims())
        wanted = {revision.name: revision for revision in self.desired.revisions}
        answering = {name: self._serving(name) or running for name, running in sorted(self._running.items())}
        backends = [
            Backend(
                name,
                running.revision.model_version,
                self._routed.get(name, 0),
                mirror_percent=wanted[name].mirror_percent if name in wanted else 0,
                match=wanted[name].match if name in wanted else (),
                replicas=1 if isinstance(running, PooledRevision) else running.ready,
                pooled=isinstance(running, PooledRevision),
                pool=running.revision.pool if isinstance(running, PooledRevision) and running.rests else "",
                slept_at=running.slept_at,
                copies=running.copies if isinstance(running, PooledRevision) else (),
            )
            for name, running in answering.items()
            if running.ready and not running.revision.is_pool
        ]
        if not any(self._routed.values()):
            backends += [
                Backend(each.name, each.model_version, 100, replicas=0, slept_at=each.slept_at or 0.0, asleep=True)
                for each in self.desired.revisions
                if self._waits(each)
            ][:1]
        is_refusing = not backends
        if is_refusing and not self._is_refusing:
            self._workshop.changed()
        self._is_refusing = is_refusing
        return ServiceRoute(
            self.namespace,
            self.name,
            tuple(backends),
            self._unserved(),
            preview=self.desired.preview,
            affinity=self.desired.affinity,
            request_timeout_s=self.desired.request_timeout_s,
            takes_feedback=self.desired.takes_feedback,
            access=self.desired.access,
            cors=self.desired.cors,
            limits=self.desired.limits,
            explains=any(_may_explain(running.revision) for running in self._running.values()),
            waits_for_pool=not backends
            and any(isinstance(running, PooledRevision) and running.rests for running in self._running.values()),
        )

    def _unserved(self) -> str:
        """Return the error message for clients while no replica takes requests."""
        key = f"{self.namespace}/{self.name}"
        if any(revision.is_pool for revision in self.desired.revisions):
            return f"{key} is a model pool: call one of its services"
        why = next((each.why_failed for each in self._running.values() if each.slept_at and each.why_failed), "")
        if why:
            return f"service {key} was asleep and has no replica that serves: {why}"[:_LONGEST_REASON]
        if self.desired.revisions and not any(map(self._replicas, self.desired.revisions)):
            return f"service {key} is stopped: it serves again once it is resumed"
        return f"service {key} is starting: no replica takes requests yet; try again soon"

    def leaving(self) -> Iterator[Replica]:
        """Yield the leaving replicas that still have an address."""
        yield from (replica for replica in self.replicas() if replica.leaving and not replica.ended)

    def replicas(self) -> Iterator[Replica]:
        """Yield every replica."""
        for running in (*self._running.values(), *(own.running for own in self._own.values())):
            yield from running.replicas

    def observed(self, confirmed: ServiceRoute | None, since: dict[tuple[str, str], float], stats_url: str) -> Observed:
        """Return the service as it is; `confirmed` is its route confirmed by the gateway, None without one."""
        routed = {backend.revision: backend for backend in confirmed.backends} if confirmed else {}
        names = [revision.name for revision in self.desired.revisions]
        names += [name for name in self._running if name not in names]
        slept = {each.name: each.slept_at for each in self.desired.revisions if each.slept_at}
        slept |= {name: running.slept_at for name, running in self._running.items() if running.slept_at}
        slept |= {name: own.running.slept_at for name, own in self._own.items() if own.serve}  # as in cluster names
        revisions = []
        of_pool = shares(self._claims())
        for name in names:
            running = self._serving(name) or self._running.get(name)
            replicas = running.observed() if running is not None else ()
            is_pooled = isinstance(running, PooledRevision)
            is_pool = running is not None and running.revision.is_pool  # which takes no requests by itself
            routed_percent = routed[name].share_percent if name in routed else 0
            revisions.append(
                ObservedRevision(
                    name=name,
                    weight_percent=of_pool.get(name, 0) if is_pool else routed_percent,
                    replicas=replicas,
                    message=next(
                        (each.message for each in replicas if each.phase not in (_READY, ReplicaPhase.DRAINING)), ""
                    ),
                    gateway_since=since.get((self.namespace, name)),
                    mirror_percent=routed[name].mirror_percent if name in routed else 0,
                    match=routed[name].match if name in routed else (),
                    pooled_as=running.key if isinstance(running, PooledRevision) else "",
                    pool=running.revision.pool if running is not None and is_pooled else "",
                    own=self._own[name].running.observed() if is_pooled and name in self._own else (),
                    is_pool=is_pool,
                    slept_at=slept.get(name),
                    woken_at=self._woken[name][1] if self._slept_from(name) == slept.get(name) else None,
                )
            )
        return Observed(
            namespace=self.namespace,
            service=self.name,
            generation=self.desired.generation,
            revisions=tuple(revisions),
            gateway_stats_url=stats_url,
            message=self.complaint or self._explanation(),
            preview=confirmed.preview if confirmed is not None and confirmed.preview in routed else "",
            gateway_counts=not any(
                isinstance(each, PooledRevision) and each.rests and self._serving(name) is None
                for name, each in self._running.items()
            ),
        )

    def _explanation(self) -> str:
        if any(map(self._waits, self.desired.revisions)) and not any(self._routed.values()):
            return ""
        return explanation(self._claims(), served=any(self._routed.values()))

    def _claims(self) -> list[Claim]:
        return [self._claim(each.name, each.weight_percent) for each in self.desired.revisions]

    def _claim(self, revision: str, weight_percent: int) -> Claim:
        running = self._serving(revision) or self._running.get(revision)
        if running is None:
            return Claim(revision, weight_percent, 0)
        was_ready = running.was_ready or self._serving(revision) is not None
        return Claim(revision, weight_percent, running.ready, was_ready=was_ready)

    def _held(self) -> dict[str, int]:
        """Return the shares kept unchanged while the desired revisions start; empty where none are."""
        if self.deleted or not is_first_start(self._claims()):
            return {}
        held = shares([self._claim(name, share) for name, share in self._routed.items()])
        return held if any(held.values()) else {}

    def _removed(self, removal: asyncio.Task[None]) -> None:
        self._removals.discard(removal)
        self._workshop.changed()


def _may_explain(revision: DesiredRevision) -> bool:
    return revision.explainer is not None or revision.is_code


def _what_never_changes(revision: DesiredRevision) -> DesiredRevision:
    return replace(
        revision,
        replicas=0,
        weight_percent=0,
        mirror_percent=0,
        match=(),
        restart_number=0,
        tap=None,
        is_code=False,
        slept_at=None,
        pool_copies={},
        own_replicas=0,
        own_since=0.0,
    )
