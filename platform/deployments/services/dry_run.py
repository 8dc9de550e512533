"""Dry run: applies a file for real, in a transaction that is rolled back.

So it raises every refusal of the real change, and reports nothing that would not happen.
"""

from datetime import datetime

from django.db import transaction

from clusters.models import Cluster
from clusters.services.clusters import cluster_apply
from deployments import mapping
from deployments.domain.phases import Phase
from deployments.domain.policy import Policy, parse_policy, uncompared
from deployments.domain.rollout import Portion
from deployments.domain.service_state.contract import Contract
from deployments.domain.service_state.desired import foreseen_of
from deployments.models import InferenceService, Revision, Rollout, RolloutPolicy
from deployments.reconcile.service_change import load
from deployments.services.policies import policy_apply
from deployments.services.rollout_forecast import Look, Survey, analysis_plan, room_plan
from deployments.services.rollouts import rollout_start
from deployments.services.services import service_apply
from deployments.views.shapes import Outcome, Plan
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
) -> Plan:
    """Return what `service_apply` would do, without changing anything; raises what that raises."""
    with transaction.atomic():
        old = InferenceService.objects.filter(namespace=namespace, name=name).first()
        before = None if old is None else old.document
        was_stopped = old is not None and old.stopped
        changes = 0 if old is None else old.event_seq
        revisions = 0 if old is None else old.revision_seq
        newest = Rollout.objects.filter(service=old).order_by("-pk").first() if old is not None else None
        service, created = service_apply(
            document=document,
            namespace=namespace,
            name=name,
            actor=actor,
            now=now,
            accept=accept,
            may_grant_egress=may_grant_egress,
        )
        contract = _contract(service, newest)
        if not created and service.event_seq == changes:
            outcome, message = Outcome.UNCHANGED, f"service {service} is as its file says"
        else:
            outcome = Outcome.CREATED if created else Outcome.CHANGED
            message = _what_follows(service, revisions, newest, was_stopped=was_stopped)
        wishes = _wishes(service, now)
        transaction.set_rollback(True)
    return Plan(outcome, message, before, document, contract, wishes=wishes)


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
) -> Plan:
    """Return what `rollout_start` would do, without changing anything; raises what that raises.

    Args:
        look: reads a service's counters for the analysis forecast; None leaves that out.
        survey: reads a service and its cluster's nodes for the capacity check; None leaves that out.
    """
    with transaction.atomic():
        service = InferenceService.objects.filter(namespace=namespace, name=name).first()
        before = None if service is None else service.document
        revisions = 0 if service is None else service.revision_seq
        newest = Rollout.objects.filter(service=service).order_by("-pk").first()
        row = rollout_start(
            namespace=namespace, name=name, version=version, policy=policy, actor=actor, now=now, accept=accept
        )
        message = _what_follows(row.service, revisions, newest)
        contract = _contract(row.service, newest)
        followed, stable = mapping.rollout_state(row).policy, row.from_revision
        wishes, canary = _wishes(row.service, now), mapping.revision_state(row.to_revision)
        transaction.set_rollback(True)
    analysis = None if look is None else analysis_plan(policy=followed, stable=stable, look=look, now=now)
    room = None if survey is None else room_plan(policy=followed, stable=stable, canary=canary, survey=survey)
    return Plan(
        Outcome.CREATED,
        message,
        before,
        row.service.document,
        contract,
        analysis,
        wishes,
        room,
        warnings=_warnings(followed),
    )


def policy_plan(*, document: object, name: str, actor: str, now: datetime, may_read_all_series: bool = False) -> Plan:
    """Return what `policy_apply` would do, without changing anything; raises what that raises."""
    with transaction.atomic():
        policy = parse_policy(document, name=name)
        old = RolloutPolicy.objects.filter(name=policy.name).first()
        row, created = policy_apply(
            document=document, name=name, actor=actor, now=now, may_read_all_series=may_read_all_series
        )
        transaction.set_rollback(True)
    before = None if old is None else old.document
    if created:
        outcome, message = Outcome.CREATED, f"policy {row.name} is new"
    elif before == row.document:
        outcome, message = Outcome.UNCHANGED, f"policy {row.name} is as its file says"
    else:
        outcome = Outcome.CHANGED
        message = f"policy {row.name} changes for rollouts to come; those in progress keep what they began with"
    return Plan(outcome, message, before, row.document, warnings=_warnings(policy))


def _warnings(policy: Policy) -> tuple[str, ...]:
    warning = uncompared(policy)
    return (warning,) if warning else ()


def cluster_plan(*, document: object, name: str, actor: str, now: datetime) -> Plan:
    """Return what `cluster_apply` would do, without changing anything; raises what that raises."""
    with transaction.atomic():
        old = Cluster.objects.filter(name=name).first()
        row, created = cluster_apply(document=document, name=name, actor=actor, now=now)
        transaction.set_rollback(True)
    if created or old is None:
        return Plan(Outcome.CREATED, f"cluster {row.name} is new", None, row.document)
    if old.changed_at == row.changed_at:
        return Plan(Outcome.UNCHANGED, f"cluster {row.name} is as its file says", old.document, row.document)
    message = f"cluster {row.name} changes, and what runs there follows with the next turn of the reconciler"
    return Plan(Outcome.CHANGED, message, old.document, row.document)


def _wishes(service: InferenceService, now: datetime) -> tuple[Desired, ...]:
    """Return the cluster's desired states from now to the end of the rollout in progress."""
    change = load(service.pk, now=now)
    steps = () if change.rollout is None else mapping.rollout_state(change.rollout).policy.steps
    portions = (Portion(step.weight, step.mirror, step.match) for step in steps)
    return foreseen_of(change.state(), portions, change.service.generation)


def _contract(service: InferenceService, newest: Rollout | None) -> Contract | None:
    """Return the contract of the rollout that was just started; None where none was."""
    started = Rollout.objects.filter(service=service, pk__gt=newest.pk if newest is not None else 0).first()
    return None if started is None or started.contract is None else Contract.stored(started.contract)


def _what_follows(
    service: InferenceService, revisions: int, newest: Rollout | None, *, was_stopped: bool = False
) -> str:
    """Return the consequence of the change just made to the service, in a sentence.

    Args:
        revisions: the number of its revisions before.
        newest: its newest rollout before.
    """
    revision = Revision.objects.filter(service=service, number__gt=revisions).order_by("-number").first()
    rollout = Rollout.objects.filter(service=service).order_by("-pk").first()
    parts: list[str] = []
    if service.stopped != was_stopped:
        parts.append("the service is stopped" if service.stopped else "the service, which is stopped, serves again")
    if newest is not None and rollout is not None and not Phase(newest.phase).is_finished:
        newest_phase = Rollout.objects.values_list("phase", flat=True).get(pk=newest.pk)
        if Phase(newest_phase).is_finished:
            parts.append(f"rollout {newest.pk}, which is in progress, is given up")
    if service.awaited_import is not None and not revision:
        awaited = service.awaited_import
        parts.append(f"{awaited.shown_uri} is imported as a version of model {awaited.model}, which then is served")
    if revision is not None:
        parts.append(f"new revision {revision.name} of {revision.model_version}")
    if rollout is not None and (newest is None or rollout.pk != newest.pk):
        parts.append(f"rollout by policy {rollout.policy_name}" if rollout.policy_name else "rollout without a policy")
    return "; ".join(parts) or "the file changes, and no revision is made"
