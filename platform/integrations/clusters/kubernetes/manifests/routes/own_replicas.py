"""Own replicas beside a model pool: which are there, and whether they or the pool answer. Pure.

A service in a pool earns replicas of its own by its load; one that moves into a pool, or out of it, has them meanwhile.

    stage   rules that match    rules that match no request, so that the gateway knows their backends before
    POOL    to the pool
    KNOWN   to the pool         to own replicas
    OWN     to own replicas     to the pool
    MOVED   to own replicas     of a service without a pool
    TWICE   those               to own replicas
    PLAIN   those

    down    KNOWN once all revisions with requests have a ready replica of their own, then OWN; further down while some
            revision is not in the pool: a rollout into a pool, or out of it, is at PLAIN, as any other
    up      once all revisions are in the pool; KNOWN once some is to have no replicas of its own and the pool has
            loaded the models, or none is ready; only then replicas end, and once their pods are gone: POOL

A stage follows another once the gateway has confirmed that, and `SETTLES_S` after its routes were written: Envoy
Gateway confirms a route before its Envoys have the addresses of new backends, and these answer 500 until then. All
rules are in the same routes, since a change of one route is taken up in one piece: paths, headers and backends change
together. All revisions of a service are answered for in the same way.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from integrations.clusters.base import Desired, DesiredRevision

SETTLES_S = 3.0
OWN_FACTOR = 2
"""Of weights in rules to own replicas, while a pool's rules are there (`routes.py`)."""


class Stage(StrEnum):
    """Who answers, as an annotation of the service's HTTPRoute says; in their order."""

    POOL = ""
    KNOWN = "known"
    OWN = "own"
    MOVED = "moved"
    TWICE = "twice"
    PLAIN = "plain"

    @classmethod
    def of(cls, text: str) -> "Stage":
        """Return the stage of an annotation's value; the first for what is none."""
        return next((each for each in cls if each.value == text), cls.POOL)

    @property
    def is_pools(self) -> bool:
        """Return whether the pool answers."""
        return self in (Stage.POOL, Stage.KNOWN)

    @property
    def is_plain(self) -> bool:
        """Return whether the first rules are those of a service without a pool."""
        return self in (Stage.MOVED, Stage.TWICE, Stage.PLAIN)


BETWEEN = (Stage.KNOWN, Stage.MOVED, Stage.TWICE)
"""The stages that no service stays in."""


@dataclass(frozen=True, slots=True)
class Own:
    """Own replicas of a service in a pool.

    Attributes:
        present: the revisions in a pool that have a Deployment and what belongs to it.
        held: those of them whose number of replicas stays as it is, since they may have requests.
        pods_remain: some pod of the service is there, of whichever revision, so that its NetworkPolicies stay.
        has_left: no revision is in the pool any more, and the gateway has confirmed that no rule leads there.
        since: Unix seconds since which the routes ask for the stage.
    """

    stage: Stage = Stage.POOL
    present: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    pods_remain: bool = False
    has_left: bool = False
    since: float = 0.0

    def knows(self, revision: DesiredRevision) -> bool:
        """Return whether routes have rules to a revision's own replicas beside the first ones."""
        has_own = not revision.pool or revision.name in self.present
        return has_own and self.stage not in (Stage.POOL, Stage.PLAIN)


@dataclass(frozen=True, slots=True)
class Seen:
    """What is on the cluster of a service's own replicas.

    Attributes:
        stage: as the routes ask for it now.
        is_confirmed: every Gateway of the service has taken up the routes as they are, and has had time to.
        scales: numbers of replicas of the Deployments, by revision.
        ready: numbers of replicas that take requests, by revision.
        pods: revisions with pods, those that end too.
    """

    stage: Stage = Stage.POOL
    is_confirmed: bool = False
    scales: Mapping[str, int] | None = None
    ready: Mapping[str, int] | None = None
    pods: frozenset[str] = frozenset()


def moves(desired: Desired) -> bool:
    """Return whether some revisions are in a pool, and others are not."""
    return len({bool(each.pool) for each in desired.revisions}) > 1


def own_count(desired: Desired, revision: DesiredRevision) -> int:
    """Return how many own replicas a revision in a pool is to have: in a move, as many as those outside the pool."""
    if moves(desired) and (revision.replicas or revision.weight_percent):
        return revision.own_replicas or max(1, *(each.replicas for each in desired.revisions if not each.pool))
    return revision.own_replicas


def earned(desired: Desired) -> frozenset[str]:
    """Return the revisions that are to have replicas of their own beside a pool."""
    return frozenset(each.name for each in desired.revisions if each.pool and own_count(desired, each))


def spared(desired: Desired, stage: Stage) -> frozenset[str]:
    """Return the revisions whose models the pool need not have in memory: own replicas answer, and are to go on."""
    wanted, claimed = earned(desired), _claimed(desired)
    return wanted if stage is Stage.OWN and all(each in wanted for each in claimed) else frozenset()


def decide(desired: Desired, seen: Seen, loaded: Collection[str]) -> Own:
    """Return who is to answer now, and what stays.

    Args:
        loaded: the revisions that the pool has loaded.
    """
    wanted, scales = earned(desired), seen.scales or {}
    known = {each.name for each in desired.revisions if each.pool}
    left = {each for each in known - wanted if scales.get(each) or each in seen.pods}
    stage = _stage(desired, seen, loaded, is_empty=not left)
    present = wanted | left | (known & scales.keys() if stage is not Stage.POOL else set())
    is_over = stage.is_pools and seen.stage.is_pools and seen.is_confirmed
    return Own(
        stage,
        frozenset(present),
        held=frozenset() if is_over else frozenset(present - wanted),
        pods_remain=bool(seen.pods),
        has_left=not known and seen.stage is Stage.PLAIN and seen.is_confirmed,
    )


def own_revisions(desired: Desired, own: Own) -> list[DesiredRevision]:
    """Return the revisions in a pool that have objects of their own, as these are rendered."""
    return [as_own(desired, each) for each in desired.revisions if each.pool and each.name in own.present]


def as_own(desired: Desired, revision: DesiredRevision) -> DesiredRevision:
    """Return a revision in a pool as its own replicas run it; the reconciler sets their number, no autoscaler."""
    return replace(revision, pool="", replicas=own_count(desired, revision), autoscaling=None)


def _claimed(desired: Desired) -> list[str]:
    return [each.name for each in desired.revisions if each.weight_percent]


def _stage(desired: Desired, seen: Seen, loaded: Collection[str], *, is_empty: bool) -> Stage:
    claimed, at = _claimed(desired), seen.stage
    ready = [each for each in claimed if (seen.ready or {}).get(each)]
    outside = {each.name for each in desired.revisions if not each.pool}
    if at.is_plain:
        is_bare = not outside and not ready
        return Stage.POOL if is_bare else _after(seen, 1 if outside else -1)
    own = earned(desired) | outside
    if at.is_pools:
        if outside and len(outside) == len(desired.revisions):
            return Stage.PLAIN  # the pool can answer for nothing any more
        can_begin = bool(claimed) and ready == claimed and own.issuperset(claimed)
        return _begun(seen) if can_begin else _ended(seen, is_empty=is_empty)
    must_end = not own.issuperset(claimed) and all(each in loaded for each in claimed)
    if not ready or (must_end and seen.is_confirmed):
        return Stage.KNOWN
    return _after(seen, 1) if outside else at


def _begun(seen: Seen) -> Stage:
    return _after(seen, 1) if seen.stage is Stage.KNOWN else Stage.KNOWN


def _ended(seen: Seen, *, is_empty: bool) -> Stage:
    return Stage.KNOWN if seen.stage is Stage.KNOWN and not (seen.is_confirmed and is_empty) else Stage.POOL


def _after(seen: Seen, step: int) -> Stage:
    """Return the next stage, or the one before, once the gateway has confirmed the present one."""
    order = [*Stage]
    return order[min(order.index(seen.stage) + step, len(order) - 1)] if seen.is_confirmed else seen.stage
