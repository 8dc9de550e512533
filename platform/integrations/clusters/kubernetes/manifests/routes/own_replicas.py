"""Own replicas of a service in a pool: which of them are there, and whether they or the pool answer. Pure.

    POOL   routes lead to the pool alone
      |    all revisions with requests have a ready replica of their own
    KNOWN  and have rules to own replicas, which match no request: the gateway gets to know their addresses
      |    confirmed
    OWN    those rules match, and the pool's match no request
      |    some revision is to have none, and the pool has loaded the models; or no replica is ready
    KNOWN  confirmed; only then replicas end, and once their pods are gone
    POOL   the rules and objects leave

Both kinds of rules are in the same routes, since a change of one route is taken up in one piece: paths, headers and
backends change together. All revisions of a service are answered for in the same way.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from integrations.clusters.base import Desired, DesiredRevision


class Stage(StrEnum):
    """Who answers, as an annotation of the service's HTTPRoute says."""

    POOL = ""
    KNOWN = "known"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Own:
    """Own replicas of a service in a pool.

    Attributes:
        present: the revisions that have a Deployment and what belongs to it.
        held: those of them whose number of replicas stays as it is, since they may have requests.
        pods_remain: some pod of the service is there, of whichever revision, so that its NetworkPolicies stay.
    """

    stage: Stage = Stage.POOL
    present: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    pods_remain: bool = False

    @property
    def answers(self) -> bool:
        """Return whether they answer, not the pool."""
        return self.stage is Stage.OWN

    def knows(self, revision: str) -> bool:
        """Return whether routes have rules to a revision's own replicas."""
        return self.stage is not Stage.POOL and revision in self.present


@dataclass(frozen=True, slots=True)
class Seen:
    """What is on the cluster of a service's own replicas.

    Attributes:
        stage: as the routes ask for it now.
        is_confirmed: every Gateway of the service has taken up the routes as they are.
        scales: numbers of replicas of the Deployments, by revision.
        ready: numbers of replicas that take requests, by revision.
        pods: revisions with pods, those that end too.
    """

    stage: Stage = Stage.POOL
    is_confirmed: bool = False
    scales: Mapping[str, int] | None = None
    ready: Mapping[str, int] | None = None
    pods: frozenset[str] = frozenset()


def earned(desired: Desired) -> frozenset[str]:
    """Return the revisions that are to have replicas of their own beside a pool."""
    return frozenset(each.name for each in desired.revisions if each.pool and each.own_replicas)


def spared(desired: Desired, stage: Stage) -> frozenset[str]:
    """Return the revisions whose models the pool need not have in memory: own replicas answer, and are to go on."""
    wanted, claimed = earned(desired), _claimed(desired)
    return wanted if stage is Stage.OWN and all(each in wanted for each in claimed) else frozenset()


def decide(desired: Desired, seen: Seen, loaded: Collection[str]) -> Own:
    """Return who is to answer now, and what stays.

    Args:
        loaded: the revisions that the pool has loaded.
    """
    wanted, claimed = earned(desired), _claimed(desired)
    scales, ready = seen.scales or {}, seen.ready or {}
    known = {each.name for each in desired.revisions if each.pool}
    left = {each for each in known - wanted if scales.get(each) or each in seen.pods}
    stage = _stage(
        seen,
        can_begin=bool(claimed) and all(each in wanted and ready.get(each) for each in claimed),
        must_end=not any(ready.get(each) for each in claimed)
        or (any(each not in wanted for each in claimed) and all(each in loaded for each in claimed)),
        has_left=not left,
    )
    present = wanted | left | (known & scales.keys() if stage is not Stage.POOL else set())
    is_over = stage is not Stage.OWN and seen.stage is not Stage.OWN and seen.is_confirmed
    return Own(
        stage,
        frozenset(present),
        held=frozenset() if is_over else frozenset(present - wanted),
        pods_remain=bool(seen.pods),
    )


def own_revisions(desired: Desired, own: Own) -> list[DesiredRevision]:
    """Return the revisions in a pool that have objects of their own, as these are rendered."""
    return [as_own(each) for each in desired.revisions if each.pool and each.name in own.present]


def as_own(revision: DesiredRevision) -> DesiredRevision:
    """Return a revision in a pool as its own replicas run it; the reconciler sets their number, no autoscaler."""
    return replace(revision, pool="", replicas=revision.own_replicas, autoscaling=None)


def _claimed(desired: Desired) -> list[str]:
    return [each.name for each in desired.revisions if each.weight_percent]


def _stage(seen: Seen, *, can_begin: bool, must_end: bool, has_left: bool) -> Stage:
    if seen.stage is Stage.OWN:
        return Stage.KNOWN if must_end else Stage.OWN
    if can_begin:
        return Stage.OWN if seen.stage is Stage.KNOWN and seen.is_confirmed else Stage.KNOWN
    return Stage.KNOWN if seen.stage is Stage.KNOWN and not (seen.is_confirmed and has_left) else Stage.POOL
