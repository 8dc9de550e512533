"""Own replicas of services in model pools: how many their load has earned. A part of `replicas`."""

from collections.abc import Sequence
from datetime import timedelta

from deployments.domain.autoscaling import load_window
from deployments.domain.autoscaling.earned_replicas import busy_since, demand, earned, sustained_of
from deployments.domain.autoscaling.replica_count import (
    Bounds,
    Decision,
    decide,
    memory_json,
    stored_memory,
    window_of,
)
from deployments.domain.autoscaling.scale_to_zero import may_sleep, quiet_of, sleep_json, stored_sleep, watched
from deployments.domain.service_state.desired import Role
from deployments.mapping import own_scaling_of
from deployments.models import Revision
from deployments.reconcile.service_change import Change
from events.domain.kinds import Kind
from integrations.clusters.base import Observed, Sample


def may_earn(row: Revision) -> bool:
    """Return whether a revision in a pool may get replicas of its own now."""
    return bool(row.own_scaling) and row.stopped_at is None and row.role in (Role.STABLE, Role.CANARY)


def set_own_replicas(
    change: Change, row: Revision, seen: Observed, measured: Sequence[Sample], *, window: timedelta
) -> None:
    """Record the number of own replicas of a revision in a pool: earned by load, none where it is quiet.

    Args:
        measured: the counters of the replicas that answer for it, the pool's or its own.
        window: how long fewer must have sufficed before some are stopped.
    """
    scaling, observed, now = own_scaling_of(row), seen.revision(row.name), change.now
    if scaling is None or observed is None:
        return
    looks = load_window.looked(load_window.stored_looks(row.load.get("looks", {})), measured, row.name, now.timestamp())
    readings = load_window.readings(looks, scaling.targets)
    filled = demand(readings)
    since = busy_since(row.load.get("busy_since"), filled, now)
    quiet = watched(stored_sleep({"sleep": row.load.get("own_quiet")}), measured, row.name, now)
    is_alone = change.rollout is None and row.role == Role.STABLE
    memory = stored_memory(row.load.get("memory", {}))
    decision = Decision(row.own_replicas, str(row.load.get("why", "")), memory)
    lasted = f"{sustained_of(scaling.behavior).total_seconds():g} s"
    if not row.own_replicas:
        number = earned(since, filled, scaling, now)
        why = f"the pool answers; load that fills a replica for {lasted} brings replicas of its own"
        if number:
            why = f"its load in the pool has filled {filled:.1f} replicas for {lasted}"
        decision = Decision(number, why, memory)
    elif not observed.pooled_as:
        decision = decide(
            row.own_replicas,
            readings,
            Bounds(1 if is_alone else row.own_replicas, scaling.max_replicas),
            memory,
            window=window_of(scaling.behavior, window),
            now=now,
            behavior=scaling.behavior,
        )
    quiet_for = quiet_of(scaling.behavior)
    if row.own_replicas and is_alone and decision.replicas <= 1 and may_sleep(quiet, quiet_for, now):
        why = f"no request came for {quiet_for.total_seconds():g} s, and the pool answers"
        decision = Decision(0, why, decision.memory)
    row.load = {
        **row.load,
        "looks": load_window.looks_json(looks),
        "memory": memory_json(decision.memory),
        "busy_since": since,
        "own_quiet": sleep_json(quiet),
        "why": decision.why,
    }
    if decision.replicas and not row.own_replicas:
        row.load["own_since"] = now.timestamp()
    Revision.objects.filter(pk=row.pk).update(load=row.load)
    if decision.replicas != row.own_replicas:
        _scale(change, row, decision)


def _scale(change: Change, row: Revision, decision: Decision) -> None:
    verb = "Raised" if decision.replicas > row.own_replicas else "Lowered"
    message = f"{verb} own replicas of {row.name} from {row.own_replicas} to {decision.replicas}: {decision.why}"
    row.own_replicas = decision.replicas
    row.save(update_fields=["own_replicas"])
    change.is_changed = True
    change.event(Kind.REVISION_SCALED, message, revision=row.name)
