"""Autoscaling, as two participants: sets the number of replicas of each revision.

The numbers and their inputs are recorded before the cluster gets them, so another worker can continue. Where counters
cannot be read the load is unknown, and the numbers stay.

Where a cluster has an autoscaler of its own for a revision, that one follows the load, and this module sets its lower
bound: minReplicas, in a rollout what the rollout needs. While it does not see the load, this module scales in its
place, from the number that it left.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from common.errors import Unavailable
from deployments.domain.autoscaling import load_window, rollout_capacity
from deployments.domain.autoscaling.replica_count import (
    Bounds,
    Decision,
    decide,
    hold,
    memory_json,
    stored_memory,
    window_of,
)
from deployments.domain.autoscaling.scale_to_zero import (
    Sleep,
    asleep,
    may_sleep,
    quiet_of,
    sleep_json,
    stored_sleep,
    watched,
    woken,
)
from deployments.domain.service_file.scaling import Scaling
from deployments.domain.service_state.desired import Role
from deployments.models import Revision
from deployments.reconcile.participants import surge
from deployments.reconcile.participants.own_replicas import may_earn, set_own_replicas
from deployments.reconcile.service_change import Change
from deployments.reconcile.turn import Participant, Turn
from events.domain.kinds import Kind
from integrations.clusters.base import CompanionKind, Observed, ObservedScaling, ReplicaPhase, Sample


class AdoptedReplicas(Participant[Observed | None]):
    """Adopts the number of replicas of the cluster's own autoscaler, the basis of a rollout in progress.

    Stable keeps that many while the canary takes over its requests, and the canary needs its part of them.
    """

    def collect(self, turn: Turn) -> Observed | None:
        """Return the observation."""
        return turn.seen

    def record(self, change: Change, found: Observed | None) -> None:
        """Record stable's number."""
        stable = change.revision(Role.STABLE)
        if found is None or change.rollout is None or stable is None:
            return
        for kind in CompanionKind:
            _adopt_companions(change, stable, found, kind)
        if not _is_chosen(change, stable) or change.rollout.full_replicas is not None:
            return
        scaling = _scaling(found, stable)
        replicas = 0 if scaling is None else _scaling_of(change, stable).within(scaling.replicas)
        if replicas > stable.replicas:
            decision = Decision(replicas, "the cluster's autoscaler had come to that, and a rollout keeps it")
            _scale(change, stable, decision, is_least=True)


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a service.

    Attributes:
        seen: the observation; None where the cluster could not be read.
        samples: the counters of the observed replicas; None where they could not be read, or no number depends on them.
        window: how long fewer replicas must have sufficed before some are stopped.
    """

    seen: Observed | None
    samples: Sequence[Sample] | None
    window: timedelta


class Replicas(Participant[Load]):
    """Sets the desired number of replicas of each revision."""

    def collect(self, turn: Turn) -> Load:
        """Return the counters of running replicas where some replica count depends on them."""
        return Load(turn.seen, _samples(turn), turn.outside.scale_down_window)

    def record(self, change: Change, found: Load) -> None:
        """Record the desired number of replicas of each revision."""
        if found.seen is None or change.service.stopped:
            return
        serving = {
            replica.name
            for revision in found.seen.revisions
            for replica in revision.replicas
            if replica.phase is ReplicaPhase.READY
        }
        measured = [sample for sample in found.samples or () if sample.source in serving]
        _wake(change, found.seen)
        is_shared = surge.share_replicas(change, found.seen)
        for row in change.revisions:
            if may_earn(row) and found.samples is not None:
                set_own_replicas(change, row, found.seen, measured, window=found.window)
            bounds = _bounds(change, row) if _is_chosen(change, row) and not is_shared else None
            if bounds is not None and row.replicas:
                _set(change, row, _scaling(found.seen, row), measured, bounds, window=found.window)
            for kind in change.revision_state(row).companions:
                _set_companions(change, row, kind, found.window)


ADOPTED_REPLICAS = AdoptedReplicas()
REPLICAS = Replicas()


def _wake(change: Change, seen: Observed) -> None:
    """Record that a revision that sleeps wakes: a request woke it, or it is needed for more than requests."""
    row = change.revision(Role.STABLE)
    if row is None:
        return
    if row.replicas:
        _note_start(change, row, seen)
        return
    sleep, observed = stored_sleep(row.load), seen.revision(row.name)
    at = None if observed is None or observed.slept_at != sleep.slept_at else observed.woken_at
    why = "a request woke it" if at is not None else ""
    if change.rollout is not None:
        why = "a rollout began"
    if change.service.live_at is None:
        why = "the service was resumed"
    if why:
        _put_sleep(row, woken(sleep, change.now, at))
        _scale(change, row, Decision(1, why), is_least=False)


def _note_start(change: Change, row: Revision, seen: Observed) -> None:
    """Keep how long a replica takes to start, for the time in which it sleeps."""
    observed, sleep = seen.revision(row.name), stored_sleep(row.load)
    found = () if observed is None else (replica.start_s for replica in observed.replicas)
    start_s = max((each for each in found if each is not None), default=None)
    if start_s is not None and start_s != sleep.start_s and _scaling_of(change, row).may_sleep:
        _put_sleep(row, replace(sleep, start_s=start_s))


def _may_sleep(change: Change, row: Revision, decision: Decision) -> bool:
    """Return whether a revision may have no replicas, however long it has been quiet."""
    scaling = _scaling_of(change, row)
    is_idle = decision.replicas == 1 and scaling.may_sleep
    is_alone = row.role == Role.STABLE and change.rollout is None
    return is_idle and is_alone and change.service.live_at is not None


def _put_sleep(row: Revision, sleep: Sleep) -> None:
    row.load = {**row.load, "sleep": sleep_json(sleep)}
    Revision.objects.filter(pk=row.pk).update(load=row.load)


def _samples(turn: Turn) -> Sequence[Sample] | None:
    rows = turn.read.revisions
    follows_load = not turn.service.stopped and any(_is_chosen(turn.read, row) or may_earn(row) for row in rows)
    if turn.seen is None or not follows_load:
        return None
    try:
        return turn.samples()
    except Unavailable:
        return None


def _scaling(seen: Observed, row: Revision) -> ObservedScaling | None:
    revision = seen.revision(row.name)
    return None if revision is None else revision.scaling


def _adopt_companions(change: Change, stable: Revision, seen: Observed, kind: CompanionKind) -> None:
    observed, state = seen.revision(stable.name), change.revision_state(stable)
    its, found = state.companions.get(kind), None if observed is None else observed.companions.get(kind)
    if its is None or found is None or found.scaling is None:
        return
    if (replicas := its.within(found.scaling.replicas)) > state.companion_replicas(kind):
        _put_companions(change, stable, kind, replicas)


def _set_companions(change: Change, row: Revision, kind: CompanionKind, window: timedelta) -> None:
    """Record a revision's least number of companions of a kind, which the cluster's autoscaler may exceed."""
    if row.stopped_at is not None or row.role not in (Role.STABLE, Role.CANARY):
        return
    stable, own = change.revision(Role.STABLE), change.revision_state(row)
    rollout = None if change.rollout is None else change.rollout_state(change.rollout)
    bounds = rollout_capacity.companion_bounds(
        None if stable is None else change.revision_state(stable), own, rollout, kind
    )
    if bounds is None:
        return
    memory = stored_memory(row.load.get(kind, {}))
    decision = hold(own.companion_replicas(kind), bounds, memory, window=window, now=change.now)
    row.load = {**row.load, kind.value: memory_json(decision.memory)}
    Revision.objects.filter(pk=row.pk).update(load=row.load)
    if decision.replicas != own.companion_replicas(kind):
        _put_companions(change, row, kind, decision.replicas)


def _put_companions(change: Change, row: Revision, kind: CompanionKind, replicas: int) -> None:
    column = f"{kind}_replicas"
    message = f"{kind.capitalize()}s of {row.name}: at least {replicas} instead of {getattr(row, column)}"
    setattr(row, column, replicas)
    row.save(update_fields=[column])
    change.event(Kind.REVISION_SCALED, message, revision=row.name)


def _is_chosen(change: Change, row: Revision) -> bool:
    is_used = row.stopped_at is None and row.role in (Role.STABLE, Role.CANARY)
    return is_used and _scaling_of(change, row).is_automatic


def _scaling_of(change: Change, row: Revision) -> Scaling:
    return change.revision_state(row).scaling


def _bounds(change: Change, row: Revision) -> Bounds | None:
    rollout = None if change.rollout is None else change.rollout_state(change.rollout)
    if row.role == Role.STABLE:
        return rollout_capacity.bounds_of_stable(change.revision_state(row), rollout)
    stable = change.revision(Role.STABLE)
    if stable is None or rollout is None:
        return None
    return rollout_capacity.bounds_of_canary(change.revision_state(stable), change.revision_state(row), rollout)


def _set(
    change: Change,
    row: Revision,
    scaling: ObservedScaling | None,
    measured: Sequence[Sample],
    bounds: Bounds,
    *,
    window: timedelta,
) -> None:
    looks = load_window.looked(
        load_window.stored_looks(row.load.get("looks", {})), measured, row.name, change.now.timestamp()
    )
    memory = stored_memory(row.load.get("memory", {}))
    its = _scaling_of(change, row)
    window = window_of(its.behavior, window)
    if scaling is not None and not scaling.problem:
        decision = hold(row.replicas, bounds, memory, window=window, now=change.now)
        why = f"the cluster's autoscaler has come to {scaling.replicas}, not below {decision.replicas}: {decision.why}"
    else:
        decision = decide(
            row.replicas if scaling is None else max(row.replicas, scaling.replicas),
            load_window.readings(looks, its.targets),
            bounds,
            memory,
            window=window,
            now=change.now,
            behavior=its.behavior,
        )
        why = decision.why
        if scaling is not None:
            why = f"{why}; the cluster's autoscaler does not see the load: {scaling.problem}"
    row.load = {
        **row.load,
        "looks": load_window.looks_json(looks),
        "memory": memory_json(decision.memory),
        "why": why,
    }
    if its.may_sleep:
        sleep = watched(stored_sleep(row.load), measured, row.name, change.now)
        quiet = quiet_of(its.behavior)
        if _may_sleep(change, row, decision) and may_sleep(sleep, quiet, change.now):
            sleep = asleep(sleep, change.now)
            decision = replace(decision, replicas=0, why=f"no request came for {quiet.total_seconds():g} s")
            change.is_changed = True
        row.load = {**row.load, "sleep": sleep_json(sleep)}
    # Like the time of the last tick, this alone is no change that concerns pages or other reconcilers.
    Revision.objects.filter(pk=row.pk).update(load=row.load)
    if decision.replicas != row.replicas:
        _scale(change, row, decision, is_least=scaling is not None)


def _scale(change: Change, row: Revision, decision: Decision, *, is_least: bool) -> None:
    verb = "Raised" if decision.replicas > row.replicas else "Lowered"
    what = f"{verb} what the cluster's autoscaler keeps at least" if is_least else "Scaled"
    message = f"{what} from {row.replicas} to {decision.replicas}: {decision.why}"
    row.replicas = decision.replicas
    row.save(update_fields=["replicas"])
    change.event(Kind.REVISION_SCALED, message, revision=row.name)
