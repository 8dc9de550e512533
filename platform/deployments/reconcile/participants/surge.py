"""Rollouts without surge (`surge: false`): the canary's replicas replace stable's. Called by `replicas`.

Stable gives some up, then the canary has as many, then the weight rises; there are never more than stable had when the
rollout began. During the rollout the numbers follow no load, and nothing else sets them; afterwards the stable revision
gets all of them.
"""

from deployments.domain.rollout import RolloutState
from deployments.domain.rollout.surge import shared
from deployments.domain.service_state.desired import Role
from deployments.models import Revision, Rollout
from deployments.reconcile.service_change import Change
from events.domain.kinds import Kind
from integrations.clusters.base import Observed


def share_replicas(change: Change, seen: Observed) -> bool:
    """Record how many replicas stable and canary should have; False for rollouts with a surge.

    A rollout that is over gives its replicas back.
    """
    rollout, stable, canary = change.newest, change.revision(Role.STABLE), change.revision(Role.CANARY)
    if rollout is None or stable is None:
        return False
    if change.rollout is None:
        _give_back(change, rollout, stable)
        return False
    state = change.rollout_state(rollout)
    if state.policy.surge or canary is None:
        return False
    if rollout.full_replicas is None:
        _put_full(change, rollout, stable.replicas)
    of_stable, of_canary = shares_of(state, rollout.full_replicas or stable.replicas)
    total = of_stable + of_canary
    observed = seen.revision(stable.name)
    still = of_stable if observed is None else max(of_stable, len(observed.replicas))
    _set(change, stable, of_stable, "the canary takes the others' place")
    _set(change, canary, max(canary.replicas, min(of_canary, total - still)), f"stable gave up {total - of_stable}")
    return True


def shares_of(state: RolloutState, full: int) -> tuple[int, int]:
    """Return how many replicas stable and the canary should have now."""
    return shared(full, max(state.portion.load_percent, state.wanted.load_percent))


def _give_back(change: Change, rollout: Rollout, stable: Revision) -> None:
    if rollout.full_replicas is None:
        return
    full = change.revision_state(stable).scaling.within(rollout.full_replicas)
    _put_full(change, rollout, None)
    _set(change, stable, full, "the rollout is over")


def _put_full(change: Change, rollout: Rollout, full: int | None) -> None:
    rollout.full_replicas = full
    rollout.save(update_fields=["full_replicas"])
    change.is_changed = True


def _set(change: Change, row: Revision, replicas: int, why: str) -> None:
    if replicas == row.replicas:
        return
    message = f"Scaled from {row.replicas} to {replicas} without surge: {why}"
    row.replicas = replicas
    row.save(update_fields=["replicas"])
    change.event(Kind.REVISION_SCALED, message, revision=row.name)
