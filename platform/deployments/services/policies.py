"""Rollout policy changes: apply and delete."""

from datetime import datetime
from typing import Any

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict, InvalidInput, NotFound, NotPermitted
from deployments.domain.policy import Policy, Series, parse_policy, policy_json, promql
from deployments.domain.policy.series import NotUnderstoodError, limited
from deployments.models import InferenceService, RolloutPolicy

_SHOWN = 5


@transaction.atomic
def policy_apply(
    *, document: object, name: str | None, actor: str, now: datetime, may_read_all_series: bool = False
) -> tuple[RolloutPolicy, bool]:
    """Create or change the policy of a policy file; return it and whether it is new.

    Rollouts in progress keep the text of their start; applying the same text again changes nothing.

    Args:
        may_read_all_series: whether the actor administers the installation, and so may save `series: all`.

    Raises:
        InvalidInput: it is no policy file, or a query cannot be limited to the series of the service.
        NotPermitted: a metric has `series: all`, and the actor may not.
    """
    policy = parse_policy(document, name=name)
    text = policy_json(policy)
    row, created = RolloutPolicy.objects.select_for_update().get_or_create(
        name=policy.name, defaults=_new_columns(policy, actor, now)
    )
    if not created and row.document == text:
        return row, False
    _check_series(policy, may_read_all=may_read_all_series)
    before = None
    if not created:
        before = {"version": row.version, "document": row.document}
        row.document, row.version, row.updated_at = text, row.version + 1, now
        row.strategy, row.on_inconclusive = policy.strategy, policy.on_inconclusive
        row.save()
    after = {"version": row.version, "document": text}
    audit_record(actor=actor, action="policy.apply", target=f"policies/{row.name}", now=now, before=before, after=after)
    return row, created


def policy_planned(
    *, document: object, name: str | None, actor: str, now: datetime, may_read_all_series: bool = False
) -> tuple[RolloutPolicy, Policy, object]:
    """Return the policy's row after `policy_apply`, the policy, and the text before it, None for a new one.

    Writes nothing; raises what `policy_apply` raises.
    """
    policy = parse_policy(document, name=name)
    columns = _new_columns(policy, actor, now)
    row = RolloutPolicy.objects.filter(name=policy.name).first()
    before = None if row is None else row.document
    if row is None or before != columns["document"]:
        _check_series(policy, may_read_all=may_read_all_series)
    if row is None:
        return RolloutPolicy(name=policy.name, **columns), policy, None
    row.document = columns["document"]
    return row, policy, before


def _new_columns(policy: Policy, actor: str, now: datetime) -> dict[str, Any]:
    return {
        "document": policy_json(policy),
        "strategy": policy.strategy,
        "on_inconclusive": policy.on_inconclusive,
        "created_at": now,
        "updated_at": now,
        "created_by": actor,
    }


@transaction.atomic
def policy_delete(*, name: str, actor: str, now: datetime) -> None:
    """Remove a policy; raises NotFound, and Conflict while a service names it."""
    row = RolloutPolicy.objects.select_for_update().filter(name=name).first()
    if row is None:
        raise NotFound(f"there is no policy {name!r}")
    users = [str(service) for service in InferenceService.objects.filter(policy=row).order_by("namespace", "name")]
    if users:
        more = f" and {len(users) - _SHOWN} more" if len(users) > _SHOWN else ""
        raise Conflict(
            f"policy {name!r} is named by {', '.join(users[:_SHOWN])}{more}; name another policy there first"
        )
    before = {"version": row.version, "document": row.document}
    row.delete()
    audit_record(actor=actor, action="policy.delete", target=f"policies/{name}", now=now, before=before)


def _check_series(policy: Policy, *, may_read_all: bool) -> None:
    gates = [gate for gate in (policy.background, *(step.gate for step in policy.steps)) if gate is not None]
    for metric in (metric for gate in gates for metric in gate.metrics):
        if metric.series is Series.ALL:
            if not may_read_all:
                raise NotPermitted(
                    f"metric {metric.name!r} has `series: all`, by which it may read the series of other teams; only "
                    "who administers the installation may save it; without it the query reads the service's own series"
                )
            continue
        try:
            limited(promql.sample(metric.query), {"namespace": "x", "service": "x"})
        except NotUnderstoodError as error:
            raise InvalidInput(
                f"the query of metric {metric.name!r} {error}, so it cannot be limited to the service's own series; "
                "write it another way, or let an administrator save it with `series: all`",
                field="query",
            ) from error
