"""Plans of changes: what applying a file or starting a rollout would do, made once, without a write.

A dry run shows the plan; the change itself carries out the same plan. So both meet the same refusals, and nothing is
done twice.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from accounts.models import Team, User
from common.files.plans import Outcome, Planned
from deployments import mapping
from deployments.domain.autoscaling.earned_replicas import sustained_of
from deployments.domain.autoscaling.scale_to_zero import quiet_of, stored_sleep
from deployments.domain.policy import Policy, uncompared
from deployments.domain.rollout import Portion
from deployments.domain.service_file import access_json, plain_secrets, stored_access
from deployments.domain.service_state.contract import Contract
from deployments.domain.service_state.desired import foreseen_of
from deployments.domain.service_state.owner import Owner
from deployments.models import InferenceService, Rollout
from deployments.reconcile.service_change import Change
from deployments.reconcile.service_plan import carry_out, planning
from deployments.services.files.programs import with_records
from deployments.services.files.service_files import service_apply, service_planned
from deployments.services.policies import policy_planned
from deployments.services.rollout.rollout_forecast import Look, Survey, analysis_plan, room_plan
from deployments.services.rollout.rollouts import rollout_begin, rollout_start
from deployments.services.services import service_named, spec_of
from deployments.views.shapes import Plan
from integrations.clusters.base import Desired


def service_plan(
    *,
    document: object,
    namespace: str,
    name: str,
    actor: str,
    now: datetime,
    accept: str | None = None,
    may_grant_egress: bool = False,
    default_access: str | None = None,
    by: Owner | None = None,
) -> Planned[Plan, tuple[InferenceService, bool]]:
    """Return the plan of `service_apply`, without changing anything; raises what that raises."""
    document = with_records(document, namespace=namespace, name=name, now=now)
    arguments: dict[str, Any] = {"document": document, "namespace": namespace, "name": name, "actor": actor, "now": now}
    arguments |= {"accept": accept, "may_grant_egress": may_grant_egress, "default_access": default_access, "by": by}
    change, rollout, created = service_planned(**arguments)
    service, was = change.service, _was(change)
    if was is not None and service.event_seq == was.event_seq:
        outcome, message = Outcome.UNCHANGED, f"service {service} is as its file says"
    else:
        outcome = Outcome.CREATED if created else Outcome.CHANGED
        message = _what_follows(change)
    before = None if was is None else was.document
    plan = Plan(
        outcome,
        message,
        before,
        document,
        _contract(rollout),
        desired_states=_desired_states(change),
        warnings=_of_file(change),
    )
    return Planned(plan, lambda: (service, created) if carry_out(change) else service_apply(**arguments))


def rollout_plan(
    *,
    namespace: str,
    name: str,
    version: str,
    policy: str | None,
    actor: str,
    now: datetime,
    accept: str | None = None,
    look: Look | None = None,
    survey: Survey | None = None,
) -> Planned[Plan, Rollout]:
    """Return the plan of `rollout_start`, without changing anything; raises what that raises.

    Args:
        look: reads a service's counters for the analysis forecast; None leaves that out.
        survey: reads a service and its cluster's nodes for the capacity check; None leaves that out.
    """
    arguments: dict[str, Any] = {"version": version, "policy": policy, "actor": actor, "accept": accept}
    with planning(service_named(namespace, name), now=now) as change:
        row = rollout_begin(change, **arguments)
    was, followed, stable = _was(change), change.rollout_state(row).policy, row.from_revision
    canary = change.revision_state(row.to_revision)
    plan = Plan(
        Outcome.CREATED,
        _what_follows(change),
        None if was is None else was.document,
        change.service.document,
        _contract(row),
        None if look is None else analysis_plan(policy=followed, stable=stable, look=look, now=now),
        _desired_states(change),
        None if survey is None else room_plan(policy=followed, stable=stable, canary=canary, survey=survey),
        warnings=_warnings(followed),
    )
    return Planned(
        plan,
        lambda: row if carry_out(change) else rollout_start(namespace=namespace, name=name, now=now, **arguments),
    )


def policy_plan(*, document: object, name: str, actor: str, now: datetime, may_read_all_series: bool = False) -> Plan:
    """Return what `policy_apply` would do, without changing anything; raises what that raises."""
    row, policy, before = policy_planned(
        document=document, name=name, actor=actor, now=now, may_read_all_series=may_read_all_series
    )
    if before is None:
        outcome, message = Outcome.CREATED, f"policy {row.name} is new"
    elif before == row.document:
        outcome, message = Outcome.UNCHANGED, f"policy {row.name} is as its file says"
    else:
        outcome = Outcome.CHANGED
        message = f"policy {row.name} changes for rollouts to come; those in progress keep what they began with"
    return Plan(outcome, message, before, row.document, warnings=_warnings(policy))


def _of_file(change: Change) -> tuple[str, ...]:
    return (
        *plain_secrets(spec_of(change.service)),
        *_kept(change),
        *_unknown_callers(change.service),
        *_sleeps(change),
    )


def _kept(change: Change) -> Iterator[str]:
    """Yield a warning for each field that the file leaves out and the service keeps."""
    service, was = change.service, _was(change)
    left_out = set() if was is None else was.document["spec"].keys() - service.document["spec"].keys()
    if "access" in left_out:
        callers = access_json(stored_access(service.access))
        yield f"spec.access is left out, so the service keeps {callers if isinstance(callers, str) else 'its callers'}"
    if "limits" in left_out and service.limits:
        yield "spec.limits is left out, so the service keeps its limits; write limits: {} to end them"


def _sleeps(change: Change) -> Iterator[str]:
    """Yield a warning with who answers a service that is to scale to zero, or how long the first answer takes."""
    spec = spec_of(change.service)
    scaling = spec.scaling
    if spec.own_scaling is not None:
        yield (
            f"spec.predictor.minReplicas is 0: model pool {spec.pool} answers, and load that fills a replica for "
            f"{sustained_of(spec.own_scaling.behavior).total_seconds():g} s starts replicas of its own"
        )
    if not scaling.may_sleep:
        return
    starts = [
        float(replica["start_s"])
        for seen in change.service.observed.values()
        for replica in seen.get("replicas", ())
        if replica.get("start_s") is not None
    ]
    starts += [start for row in change.revisions if (start := stored_sleep(row.load).start_s) is not None]
    quiet = quiet_of(scaling.behavior).total_seconds()
    measured = f"its last replicas took up to {max(starts):.1f} s to start" if starts else "that was not measured yet"
    yield (
        f"spec.predictor.minReplicas is 0: after {quiet:g} s without requests no replica is left, and the next request "
        f"waits until one has started; {measured}"
    )


def _unknown_callers(service: InferenceService) -> Iterator[str]:
    """Yield a warning for each kind of names in `spec.access` that the installation does not have."""
    callers = stored_access(service.access).callers
    if callers is None or service.document["spec"].get("access") is None:
        return
    for kind, names, rows, column in (
        ("teams", callers.teams, Team, "name"),
        ("users", callers.users, User, "username"),
    ):
        known = rows.objects.filter(**{f"{column}__in": names}).values_list(column, flat=True) if names else ()
        if unknown := [name for name in names if name not in set(known)]:
            yield f"spec.access.{kind} names {', '.join(unknown[:5])}, which this installation does not have"


def _warnings(policy: Policy) -> tuple[str, ...]:
    warning = uncompared(policy)
    return (warning,) if warning else ()


def _was(change: Change) -> InferenceService | None:
    return None if change.read is None else change.read.service


def _desired_states(change: Change) -> tuple[Desired, ...]:
    """Return the cluster's desired states from now to the end of the rollout in progress."""
    rollout, newest = change.rollout, change.newest
    canary = None if newest is None else newest.to_revision
    running = [row for row in change.revisions if row.stopped_at is None or row is canary]
    going = None if rollout is None else change.rollout_state(rollout)
    state = mapping.service_state(change.service, map(change.revision_state, running), going)
    steps = () if going is None else going.policy.steps
    portions = (Portion(step.weight, step.mirror, step.match) for step in steps)
    return foreseen_of(state, portions, change.service.generation)


def _contract(started: Rollout | None) -> Contract | None:
    return None if started is None or started.contract is None else Contract.stored(started.contract)


def _what_follows(change: Change) -> str:
    """Return the consequence of a planned change of a service, in a sentence."""
    service, read = change.service, change.read
    assert read is not None  # noqa: S101 - of a plan
    was_stopped = read.service is not None and read.service.stopped
    known = 0 if read.service is None else read.service.revision_seq
    revision = next((row for row in reversed(change.revisions) if row.number > known), None)
    parts: list[str] = []
    if service.stopped != was_stopped:
        parts.append("the service is stopped" if service.stopped else "the service, which is stopped, serves again")
    given_up = read.going if change.rollout is not read.going else None
    if given_up is not None:
        parts.append(f"rollout {given_up.pk}, which is in progress, is given up")
    if service.awaited_import is not None and not revision:
        awaited = service.awaited_import
        parts.append(f"{awaited.shown_uri} is imported as a version of model {awaited.model}, which then is served")
    if revision is not None:
        parts.append(f"new revision {revision.name} of {revision.model_version}")
    if (rollout := change.newest) is not None and rollout is not read.newest:
        parts.append(f"rollout by policy {rollout.policy_name}" if rollout.policy_name else "rollout without a policy")
    return "; ".join(parts) or "the file changes, and no revision is made"
