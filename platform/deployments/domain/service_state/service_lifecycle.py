"""Service lifecycle: roles, retirement and phase, from its rollout and its cluster. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from deployments.domain.phases import Phase, Reason, ServicePhase
from deployments.domain.policy import Policy, Then
from deployments.domain.rollout import Portion
from deployments.domain.service_state.desired import RevisionState, Role, ServiceState
from deployments.domain.waits import Condition
from integrations.clusters.base import Desired, DesiredRevision, Observed, ObservedRevision


@dataclass(frozen=True, slots=True)
class Standing:
    """A service's phase and its reason, in one sentence; `waits_for` is None where at most its rollout waits."""

    phase: ServicePhase
    reason: str
    waits_for: Condition | None = None


def roles_after(
    revisions: Iterable[RevisionState], *, outcome: Phase, old: str, new: str, policy: Policy, now: datetime
) -> tuple[RevisionState, ...]:
    """Return the revisions after the rollout from `old` to `new` reached a phase.

    Healthy: new is stable and old is kept warm, or the other way round where the policy ends without a promotion.
    Degraded, Aborted: new stops as soon as the gateway sends it nothing. Any other: new is the canary, and runs.
    """
    return tuple(
        _in_role(revision, outcome, policy, now, is_new=revision.name == new)
        if revision.name in (old, new)
        else revision
        for revision in revisions
    )


def _in_role(revision: RevisionState, outcome: Phase, policy: Policy, now: datetime, *, is_new: bool) -> RevisionState:
    if outcome is Phase.HEALTHY:
        if is_new is (policy.then is not Then.END):
            return replace(revision, role=Role.STABLE, retire_at=None)
        # Without a surge the others wait for its replicas' place.
        warm = policy.scale_down_delay if policy.surge else timedelta(0)
        return replace(revision, role=Role.RETIRING, retire_at=now + warm)
    if not is_new:
        return revision
    if outcome is Phase.DEGRADED:
        return replace(revision, role=Role.FAILED, retire_at=now)
    if outcome is Phase.ABORTED:
        return replace(revision, role=Role.RETIRING, retire_at=now)
    return replace(revision, role=Role.CANARY, retire_at=None, stopped_at=None)


def retire(service: ServiceState, seen: Observed, now: datetime) -> ServiceState:
    """Return the service with expired revisions stopped, once the gateway sends them nothing."""
    return replace(
        service,
        revisions=tuple(
            _stopped(revision, now) if _is_done(revision, seen, now) else revision for revision in service.revisions
        ),
    )


def _is_done(revision: RevisionState, seen: Observed, now: datetime) -> bool:
    if revision.stopped_at is not None or revision.retire_at is None or now < revision.retire_at:
        return False
    observed = seen.revision(revision.name)
    return observed is None or not _portion(observed)


def _stopped(revision: RevisionState, now: datetime) -> RevisionState:
    role = Role.RETIRED if revision.role is Role.RETIRING else revision.role
    return replace(revision, role=role, retire_at=None, stopped_at=now)


def is_confirmed(desired: Desired, seen: Observed) -> bool:
    """Return whether the gateway sends and copies exactly what is desired, to the preview too."""
    wanted = {revision.name: _portion(revision) for revision in desired.revisions}
    actual = {revision.name: _portion(revision) for revision in seen.revisions}
    none = Portion()
    names = wanted.keys() | actual.keys()
    if seen.preview != desired.preview:
        return False
    return seen.generation >= desired.generation and all(
        wanted.get(name, none) == actual.get(name, none) for name in names
    )


def _portion(revision: DesiredRevision | ObservedRevision) -> Portion:
    """Return the desired or present portion of a revision."""
    return Portion(revision.weight_percent, revision.mirror_percent, revision.match)


def comes_alive(service: ServiceState, seen: Observed) -> bool:
    """Return whether the service, without traffic so far, can accept requests now."""
    stable = service.first(Role.STABLE)
    observed = None if stable is None else seen.revision(stable.name)
    return not service.live and not service.stopped and observed is not None and observed.ready_replicas > 0


def standing(
    service: ServiceState, before: ServicePhase, seen: Observed | None, rollout: Reason | None, problem: str
) -> Standing:
    """Return the phase of a service that is not being deleted.

    Args:
        before: its phase so far, which is kept while the cluster cannot be read.
        seen: None where the cluster could not be read; `problem` then says why.
        rollout: the reason of the rollout in progress; None without one.
    """
    stable = service.first(Role.STABLE)
    if seen is None or stable is None:
        return Standing(before, f"the cluster cannot be read: {problem}", Condition.CLUSTER_UNAVAILABLE)
    if service.stopped:
        return _stopping(seen)
    return _running(service, stable, before, seen, rollout)


def _running(
    service: ServiceState, stable: RevisionState, before: ServicePhase, seen: Observed, rollout: Reason | None
) -> Standing:
    observed = seen.revision(stable.name)
    ready = observed.ready_replicas if observed is not None else 0
    # Replicas added for the load that are not ready yet are no failure.
    least = min(stable.replicas, stable.scaling.least)
    short = f"{ready} of {stable.replicas} replicas of {stable.name} are ready{_why(observed)}"
    if stable.pool:
        short = f"no replica of model pool {stable.pool} serves {stable.name}{_why(observed)}"
    if not service.live:
        return Standing(ServicePhase.PENDING, f"not serving yet: {short}", Condition.STARTING)
    if ready < least and not _waits(stable, observed):
        return Standing(ServicePhase.DEGRADED, short, Condition.REPLICAS_NOT_READY)
    if rollout is not None:
        return Standing(ServicePhase.PROGRESSING, rollout.message)
    if observed is None or observed.weight_percent != 100:
        sent = observed.weight_percent if observed is not None else 0
        moving = ServicePhase.PENDING if before is ServicePhase.PENDING else ServicePhase.PROGRESSING
        sends = f"the gateway sends {sent} % of the traffic to {stable.name} and is to send all"
        sends += f": {seen.message}" if seen.message else ""
        return Standing(moving, sends, Condition.WAITING_FOR_GATEWAY)
    return _serving(service, stable, observed, short)


def _serving(service: ServiceState, stable: RevisionState, observed: ObservedRevision, short: str) -> Standing:
    """Return the standing of a service whose requests all go to its stable revision."""
    ready = observed.ready_replicas
    if stable.pool and observed.pooled_as and stable.own_replicas:
        waking = f"{stable.name} is answered by model pool {stable.pool} until one of its own replicas is ready"
        return Standing(ServicePhase.READY, waking)
    if stable.pool and not stable.own_replicas:
        zero = ", and has no replicas of its own until its load earns them" if stable.own_scaling else ""
        return Standing(ServicePhase.READY, f"{stable.name} serves all traffic in model pool {stable.pool}{zero}")
    if stable.pool:
        its = f"{stable.own_replicas} {'replica' if stable.own_replicas == 1 else 'replicas'} of its own"
        return Standing(ServicePhase.READY, f"{stable.name} serves all traffic with {its}, not its pool")
    if not ready and _waits(stable, observed):
        return Standing(ServicePhase.READY, held(stable.name, is_asleep=stable.is_asleep))
    many = stable.replicas if observed.scaling is None else max(ready, stable.replicas)
    what = "all traffic" if stable.model_pool is None else "the services in this pool"
    serves = f"{stable.name} serves {what} with {many} {'replica' if many == 1 else 'replicas'}"
    if ready < stable.replicas:
        serves = f"{stable.name} serves {what}; {short}"
    old = sum(replica.restart_number < service.restart_number for replica in observed.replicas)
    return Standing(
        ServicePhase.READY,
        f"{serves}; {old} of them {'is' if old == 1 else 'are'} yet to be restarted" if old else serves,
        Condition.RESTARTING if old else None,
    )


def held(revision: str, *, is_asleep: bool) -> str:
    """Return why a revision has no replica that answers, and who waits for it, where it scaled to zero."""
    if is_asleep:
        return f"{revision} is asleep, since no request came: its next request wakes it"
    return f"{revision} is waking: a request came, and requests wait in the gateway until its first replica is ready"


def _waits(stable: RevisionState, observed: ObservedRevision | None) -> bool:
    """Return whether the gateway holds the requests of a revision that sleeps or wakes."""
    return stable.slept_at is not None and observed is not None and observed.weight_percent == 100


def _stopping(seen: Observed) -> Standing:
    running = sum(len(revision.replicas) for revision in seen.revisions)
    if not running:
        return Standing(ServicePhase.STOPPED, "it was stopped, and nothing of it runs; resume it to serve again")
    left = "1 replica has" if running == 1 else f"{running} replicas have"
    return Standing(ServicePhase.STOPPED, f"it was stopped; {left} yet to finish and end", Condition.STOPPING)


def with_refusal(found: Standing, refusal: str) -> Standing:
    """Return the standing of a service whose cluster refused the last desired state, with the reason.

    Problems that keep clients from answers, and an unreadable cluster, take precedence.
    """
    if not refusal or found.waits_for in (Condition.CLUSTER_UNAVAILABLE, Condition.REPLICAS_NOT_READY):
        return found
    return Standing(found.phase, f"the cluster does not take what it should run: {refusal}", Condition.CLUSTER_REFUSES)


def _why(observed: ObservedRevision | None) -> str:
    if observed is None:
        return ""
    message = next((replica.message for replica in observed.replicas if replica.message), "")
    message = message or observed.companion_message
    return f" ({message})" if message else ""
