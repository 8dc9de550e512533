"""Changes of rollout policies."""

from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict, NotFound
from deployments.models import InferenceService, RolloutPolicy
from deployments.policy import parse_policy, policy_json

_SHOWN = 5


@transaction.atomic
def policy_apply(*, document: object, name: str | None, actor: str, now: datetime) -> tuple[RolloutPolicy, bool]:
    """Make or change the policy that a policy file says; returns it and whether it is new.

    Rollouts in progress keep the text they were started with; applying the same text again changes nothing.
    """
    policy = parse_policy(document, name=name)
    text = policy_json(policy)
    row, created = RolloutPolicy.objects.select_for_update().get_or_create(
        name=policy.name,
        defaults={
            "document": text,
            "strategy": policy.strategy,
            "on_inconclusive": policy.on_inconclusive,
            "created_at": now,
            "updated_at": now,
            "created_by": actor,
        },
    )
    before = None
    if not created:
        if row.document == text:
            return row, False
        before = {"version": row.version, "document": row.document}
        row.document, row.version, row.updated_at = text, row.version + 1, now
        row.strategy, row.on_inconclusive = policy.strategy, policy.on_inconclusive
        row.save()
    after = {"version": row.version, "document": text}
    audit_record(actor=actor, action="policy.apply", target=f"policies/{row.name}", now=now, before=before, after=after)
    return row, created


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
