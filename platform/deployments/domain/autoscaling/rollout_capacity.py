"""Rollout capacity: the replicas that each revision needs during a rollout. Pure.

During a rollout a revision's present load is not the load of the next moment: the canary's share rises, and an abort
returns all of it to stable. So stable keeps its replicas, the canary has the part of stable's replicas that its weight
requires, rounded up (Argo Rollouts: canary replicas), and each may have more by its own load. A revision on trial at
the preview address has as many as stable: all traffic moves to it in one switch. A revision kept warm keeps its
replicas. The same holds for its companions (transformer, explainer), by their own numbers.
"""

import math
from dataclasses import replace

from deployments.domain.autoscaling.replica_count import Bounds
from deployments.domain.rollout import RolloutState
from deployments.domain.service_state.desired import RevisionState
from integrations.clusters.base import CompanionKind, ObservedRevision


def as_seen(stable: RevisionState, observed: ObservedRevision | None) -> RevisionState:
    """Return stable with the replicas and companions of the cluster's own autoscaler, if more."""
    if observed is None:
        return stable
    replicas = 0 if observed.scaling is None else stable.scaling.within(observed.scaling.replicas)
    return replace(
        stable,
        replicas=max(stable.replicas, replicas),
        transformer_replicas=_most(stable, observed, CompanionKind.TRANSFORMER),
        explainer_replicas=_most(stable, observed, CompanionKind.EXPLAINER),
    )


def _most(stable: RevisionState, observed: ObservedRevision, kind: CompanionKind) -> int:
    its, seen = stable.companions.get(kind), observed.companions.get(kind)
    least = stable.companion_replicas(kind)
    return (
        least if its is None or seen is None or seen.scaling is None else max(least, its.within(seen.scaling.replicas))
    )


def at_full(stable: RevisionState, canary: RevisionState) -> int:
    """Return how many replicas the canary needs for all the traffic."""
    return canary.scaling.within(stable.replicas)


def bounds_of_stable(stable: RevisionState, rollout: RolloutState | None) -> Bounds:
    """Return the allowed range of stable's replicas; `rollout` is the one in progress."""
    scaling = stable.scaling
    if rollout is None:
        return Bounds(scaling.least, scaling.max_replicas)
    return Bounds(scaling.within(stable.replicas), scaling.max_replicas, "it keeps what it has during a rollout")


def bounds_of_canary(stable: RevisionState, canary: RevisionState, rollout: RolloutState) -> Bounds:
    """Return the allowed range of the canary's replicas."""
    percent = _percent(rollout)
    least = canary.scaling.within(math.ceil(at_full(stable, canary) * percent / 100))
    why = f"{percent} % of what {stable.name} has, which is {stable.replicas}"
    return Bounds(least, canary.scaling.max_replicas, why)


def companions_at_full(stable: RevisionState, canary: RevisionState, kind: CompanionKind) -> int:
    """Return how many companions of a kind the canary needs for all the traffic; 0 without any.

    Where stable has none, their capacity is unknown: the file's minimum, and the autoscaler adds.
    """
    its = canary.companions.get(kind)
    if its is None:
        return 0
    return its.within(stable.companion_replicas(kind) if kind in stable.companions else 0)


def companion_bounds(
    stable: RevisionState | None, own: RevisionState, rollout: RolloutState | None, kind: CompanionKind
) -> Bounds | None:
    """Return the allowed range of a revision's companions of a kind; None where it has none, or they stay.

    Args:
        stable: the stable revision, which may be the same.
    """
    its = own.companions.get(kind)
    if its is None or not its.is_automatic or stable is None:
        return None
    if own.name == stable.name:
        least = its.min_replicas if rollout is None else its.within(own.companion_replicas(kind))
        return Bounds(least, its.max_replicas, f"the {kind}'s part")
    if rollout is None:
        return None
    least = its.within(math.ceil(companions_at_full(stable, own, kind) * _percent(rollout) / 100))
    return Bounds(least, its.max_replicas, f"{_percent(rollout)} % of what {stable.name} has")


def _percent(rollout: RolloutState) -> int:
    """Return the percentage of the load that a rollout's new revision must be ready for."""
    return 100 if rollout.is_previewing else max(rollout.portion.load_percent, rollout.wanted.load_percent)
