"""Rollout commands of people and CI jobs: start, promote, abort, retry."""

import copy
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import datetime
from types import MappingProxyType

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict, InvalidInput, InvalidTransition, NotFound
from common.identifiers import check_comment
from deployments.domain import rollout as machine
from deployments.domain.phases import Phase
from deployments.domain.policy import Then
from deployments.domain.rollout import RolloutState
from deployments.domain.rollout.approvals import Author
from deployments.domain.service_file import stored_pod
from deployments.domain.service_state.contract import Contract
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService, Revision, Rollout
from deployments.reconcile import hints
from deployments.reconcile.participants.gates import questions_let_pass
from deployments.reconcile.service_change import Change, changing
from deployments.services.ownership import check_owner
from deployments.services.revisions.demands import check_demands
from deployments.services.revisions.egress import check_egress, has_egress
from deployments.services.revisions.revision_change import begin, check_agreed, check_pod, check_ready
from deployments.services.rollout.contracts import accepted
from deployments.services.services import policy_named, service_named, spec_of
from events.domain.kinds import Kind
from registry.models import ModelVersion
from registry.selectors import model_version_resolve

_VERSION = re.compile(r"[0-9]{1,9}")
_ALIAS = re.compile(r"@[^/@]+")


@transaction.atomic
def rollout_start(
    *,
    namespace: str,
    name: str,
    version: str,
    policy: str | None,
    actor: str,
    now: datetime,
    accept: str | None = None,
) -> Rollout:
    """Start a rollout of a service to another model version; one in progress is superseded.

    Args:
        version: `2`, `@alias` or `models:/NAME/2`.
        policy: the policy's name; None for the service's own.
        accept: why `actor` accepts what would break clients; None where that is refused.

    Raises:
        InvalidInput: `version` has another form, or there is no policy.
        NotFound: no such service, version, alias or policy.
        Conflict: the version is live or being rolled out already, not READY, or not approved where its model requires
            that.
        ContractBroken: it would break clients of the live version.
    """
    with changing(service_named(namespace, name).pk, now=now) as change:
        return rollout_begin(change, version=version, policy=policy, actor=actor, accept=accept)


def rollout_begin(change: Change, *, version: str, policy: str | None, actor: str, accept: str | None) -> Rollout:
    """Start a rollout as `rollout_start`, in a change under the service's lock or in a plan."""
    service = change.service
    if service.deleting_at is not None:
        raise Conflict(f"service {service} is being deleted, so nothing can be rolled out")
    check_owner(service)
    chosen = policy_named(policy, field="policy") if policy is not None else service.policy
    if chosen is None:
        raise InvalidInput(f"service {service} names no policy; say which one the rollout is to follow", field="policy")
    stable = _stable_of(change)
    if stable.model_pool:
        raise Conflict(f"{service} is a model pool and serves no version by itself; roll out one of its services")
    if spec_of(service).custom is not None:
        raise Conflict(
            f"service {service} runs the image of a custom predictor and no version of a model; apply its file with "
            "another image, which rolls it out"
        )
    target = version_of(stable.model_version, version)
    _refuse_if_there(change, stable, target)
    check_ready(target)
    spec = spec_of(service)
    by = f"a rollout to version {target.number}"
    row = begin(change, stable, spec=spec, version=target, policy=chosen, actor=actor, by=by, accept=accept)
    if not spec.follows_alias and change.rollout_state(row).policy.then is not Then.END:
        _write_into_document(service, target)
    change.write(
        lambda: audit_record(
            actor=actor,
            action="rollout.start",
            target=_target(service),
            now=change.now,
            before={"version": stable.model_version.uri},
            after={"version": target.uri},
            detail={"rollout": row.pk, "policy": chosen.name, **accepted(Contract.stored(row.contract or {}))},
        )
    )
    change.write(lambda: hints.reconcile_soon(service.pk))
    return row


def rollout_promote(*, rollout_id: int, actor: str, now: datetime, comment: str = "") -> Rollout:
    """Leave the present pause; raises InvalidTransition unless the rollout is paused.

    Where a webhook stayed undecided, the step continues without it; its other conditions still apply.
    """
    check_comment(comment)

    def promote(change: Change, state: RolloutState) -> RolloutState:
        row = _row_of(change, rollout_id)
        _say(change, row, f"{actor} promotes the rollout to {row.to_revision.name}", comment)
        if state.phase is Phase.PAUSED and questions_let_pass(rollout=row, by=actor, now=now):
            return machine.pass_webhooks(state)
        return machine.promote(state)

    return rollout_move(rollout_id, "promote", promote, actor, now, detail=_said(comment))


def rollout_abort(*, rollout_id: int, actor: str, now: datetime, comment: str = "") -> Rollout:
    """Return all traffic to stable; raises InvalidTransition if the rollout is over."""
    check_comment(comment)

    def abort(_change: Change, state: RolloutState) -> RolloutState:
        return machine.abort(state, now, actor, comment.strip())

    return rollout_move(rollout_id, "abort", abort, actor, now, detail=_said(comment))


def rollout_retry(*, rollout_id: int, actor: str, now: datetime, comment: str = "") -> Rollout:
    """Restart a degraded or aborted rollout at its first step.

    Raises:
        InvalidTransition: it is in another phase, is not the service's newest, or the service has changed its revision
            since.
        Conflict: the service is stopped; its version is not approved any more, and its model requires that; its policy
            does not meet a demand of the team or the namespace.
        NotPermitted: its revision has egress, which the service has lost since.
    """
    check_comment(comment)

    def again(change: Change, state: RolloutState) -> RolloutState:
        row, stable = change.newest, change.revision(Role.STABLE)
        _refuse_if_stopped(change)
        check_demands(change.service, state.policy if state.policy.steps else None)
        if row is None or row.pk != rollout_id:
            newest = row.pk if row is not None else None
            raise InvalidTransition(
                f"rollout {rollout_id} is not the newest of its service, {newest} is; retry that one"
            )
        check_egress(
            wanted=has_egress(row.to_revision, change.service.cluster),
            before=spec_of(change.service),
            stable=stable,
            cluster=change.service.cluster,
            may_grant=False,
        )
        check_pod(change.service.cluster, stored_pod(row.to_revision.pod))
        after = machine.retry(state, now)
        if stable is None or stable.pk != row.from_revision_id:
            raise InvalidTransition(f"rollout {rollout_id} began at {row.from_revision}, which is not stable any more")
        if row.to_revision.model_version_id != stable.model_version_id:
            check_agreed(row.to_revision.model_version)
        _say(change, row, f"{actor} retries the rollout to {row.to_revision.name}", comment)
        row.latency_edges_us = {}
        row.authors = [*row.authors, asdict(Author(actor, "started it again"))]
        return after

    return rollout_move(rollout_id, "retry", again, actor, now, detail=_said(comment))


def _say(change: Change, row: Rollout, what: str, comment: str) -> None:
    """Record the person's comment, if any."""
    if why := comment.strip():
        change.event(Kind.ROLLOUT_COMMENTED, f"{what}: {why}", revision=row.to_revision.name, rollout=row)


def _said(comment: str) -> dict[str, object]:
    return {"comment": comment.strip()} if comment.strip() else {}


@transaction.atomic
def rollout_move(
    rollout_id: int,
    verb: str,
    transition: Callable[[Change, RolloutState], RolloutState],
    actor: str,
    now: datetime,
    *,
    detail: Mapping[str, object] = MappingProxyType({}),
) -> Rollout:
    """Record a person's transition of a rollout, with an audit entry; its service is under its lock.

    Raises:
        NotFound: no such rollout.
        Conflict: its service is being deleted, or what `transition` raises.
    """
    service_id = Rollout.objects.filter(pk=rollout_id).values_list("service_id", flat=True).first()
    if service_id is None:
        raise NotFound(f"there is no rollout {rollout_id}")
    with changing(service_id, now=now) as change:
        row = _row_of(change, rollout_id)
        if change.service.deleting_at is not None:
            raise Conflict(f"service {change.service} is being deleted, so its rollouts are over")
        before = _stand_of(row)
        change.move(row, transition(change, change.rollout_state(row)))
        audit_record(
            actor=actor,
            action=f"rollout.{verb}",
            target=f"rollouts/{rollout_id}",
            now=now,
            before=before,
            after=_stand_of(row),
            detail={"service": str(change.service), **detail},
        )
    hints.reconcile_soon(service_id)
    return row


def _stand_of(row: Rollout) -> dict[str, object]:
    portion = {"weight": row.weight, "mirror": row.mirror, "match": row.match}
    return {"phase": row.phase, "step_index": row.step_index, **portion, "attempt": row.attempt}


def _row_of(change: Change, rollout_id: int) -> Rollout:
    """Return the rollout under its service's lock; the newest one as the change has it."""
    if change.newest is not None and change.newest.pk == rollout_id:
        return change.newest
    rollouts = Rollout.objects.select_related("service", "from_revision", "to_revision")
    row = rollouts.get(pk=rollout_id)
    row.service = change.service
    return row


def _stable_of(change: Change) -> Revision:
    stable = change.revision(Role.STABLE)
    _refuse_if_stopped(change)
    if stable is None or change.service.live_at is None:
        raise Conflict(
            f"service {change.service} does not serve yet ({change.service.reason}); "
            "apply its file with the version you want"
        )
    return stable


def _refuse_if_stopped(change: Change) -> None:
    if change.service.stopped:
        raise Conflict(f"service {change.service} is stopped, so nothing can be rolled out; resume it first")


def version_of(live: ModelVersion, version: str) -> ModelVersion:
    """Return the version of `2`, `@alias` or `models:/NAME/2`; raises InvalidInput and NotFound."""
    if _VERSION.fullmatch(version):
        return model_version_resolve(uri=f"models:/{live.model.name}/{version}")
    if _ALIAS.fullmatch(version):
        return model_version_resolve(uri=f"models:/{live.model.name}{version}")
    if version.startswith("models:/"):
        return model_version_resolve(uri=version)
    raise InvalidInput(
        f"version is {version[:80]!r}; expected a number such as 2, an alias such as @champion, or models:/NAME/2",
        field="version",
    )


def _refuse_if_there(change: Change, stable: Revision, target: ModelVersion) -> None:
    if stable.model_version_id == target.pk:
        raise Conflict(f"{target} is live already as {stable.name}, so there is nothing to roll out")
    going = change.rollout
    if going is not None and going.to_revision.model_version_id == target.pk:
        raise Conflict(
            f"rollout {going.pk} to {target} is in progress already ({Phase(going.phase)}); abort it to start again"
        )


def _write_into_document(service: InferenceService, target: ModelVersion) -> None:
    """Write the rollout's version into the service's file, so that applying an older file is a rollback."""
    document = copy.deepcopy(service.document)
    document["spec"]["predictor"]["model"]["storageUri"] = target.uri
    service.document, service.model_version = document, target
    service.awaited_import, service.import_note = None, ""


def _target(service: InferenceService) -> str:
    return f"services/{service.namespace}/{service.name}"
