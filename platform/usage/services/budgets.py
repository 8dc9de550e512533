"""Budgets of teams, keys and services: the most that they should use in a month, and notices of what is used of them.

Notice at 80 and 100 % is given once a month each: its row is written in one transaction with its webhook deliveries.
An enforced budget is a quota: while one of its limits is used up, gateways refuse the requests of its owner, whose name
they get with the keys of callers (`access.services.gateways`), until the limit is raised or the month ends.

Requests that the gateway refused use up nothing, or a quota could not open again by being raised.
"""

from datetime import date, datetime
from typing import Any

from django.db import transaction

from accounts.domain.roles import Owned
from accounts.services import audit_record
from accounts.services.teams import team_get
from common.errors import InvalidInput
from events.services.delivery import budget_used
from jobs.services.hints import call_on_commit
from usage.domain.budget import MEASURES, PERCENTS, Crossing, Limits, Owner, OwnerKind
from usage.domain.month import Month
from usage.models import Budget, BudgetNotice
from usage.selectors.budgets import (
    crossed_by,
    is_used_up,
    limits_in,
    limits_of,
    owner_check,
    owner_of,
    rows_of,
    team_of_key,
    used_by,
    used_by_each,
)
from usage.selectors.reports import prices


@transaction.atomic
def budget_set(*, owner: Owner, limits: Limits, actor: str, now: datetime) -> None:
    """Set the limits of an owner; without any its budget is deleted. Idempotent.

    Raises:
        NotFound: the owner is not there.
        InvalidInput: it is to be enforced without a limit.
    """
    if limits.is_enforced and limits.is_empty:
        raise InvalidInput("a budget without a limit cannot be enforced; set requests, rows or cost", field="enforce")
    owner_check(owner)
    before = limits_of(owner)
    if before == limits:
        return
    month = Month.of(now)
    if limits.is_empty:
        Budget.objects.filter(**rows_of(owner)).delete()
    else:
        values = {measure: getattr(limits, measure) for measure in MEASURES}
        used_up_in = month.first if is_used_up(limits, used_by(owner, month)) else None
        values |= {"is_enforced": limits.is_enforced, "used_up_in": used_up_in}
        Budget.objects.update_or_create(**_columns(owner), defaults=values)
    # Notice is given again of another limit, and of one that refuses requests from now on.
    enforced = limits.is_enforced and not before.is_enforced
    changed = [measure for measure in MEASURES if enforced or getattr(before, measure) != getattr(limits, measure)]
    BudgetNotice.objects.filter(**rows_of(owner), month=month.first, measure__in=changed).delete()
    audit_record(
        actor=actor,
        action=f"{owner.kind}.budget",
        target=f"{owner.kind}s/{owner.name}",
        now=now,
        before=before.values(),
        after=limits.values(),
    )
    _push_soon()


def budgets_check(*, now: datetime) -> None:
    """Give notice of each share of a budget that was used this month, once; mark those that are used up."""
    month = Month.of(now)
    budgets = {owner_of(budget): budget for budget in Budget.objects.select_related("team")}
    for owner, used in used_by_each(budgets, month).items():
        budget = budgets[owner]
        limits = limits_in(budget)
        used_up_in = month.first if is_used_up(limits, used) else None
        if budget.used_up_in != used_up_in:
            _mark(budget, used_up_in=used_up_in)
        for each in crossed_by(limits, used):
            _give_notice(budget, month, each, now)


@transaction.atomic
def _mark(budget: Budget, *, used_up_in: date | None) -> None:
    """Mark a budget, unless its limits have changed meanwhile: `budget_set` has marked it then."""
    same = {measure: getattr(budget, measure) for measure in MEASURES}
    if Budget.objects.filter(pk=budget.pk, **same).update(used_up_in=used_up_in) and budget.is_enforced:
        _push_soon()


def _push_soon() -> None:
    call_on_commit("access.tasks.push_keys", "those whose quota is used up")


@transaction.atomic
def _give_notice(budget: Budget, month: Month, used: Crossing, now: datetime) -> None:
    present = Budget.objects.select_for_update().filter(pk=budget.pk).first()  # one worker at a time
    if present is None or limits_in(present) != limits_in(budget):
        return  # it was set meanwhile, which deleted its notices
    owner, values = owner_of(budget), {"month": month.first, "measure": used.measure, "percent": used.percent}
    _, is_new = BudgetNotice.objects.get_or_create(**_columns(owner), **values, defaults={"at": now})
    if not is_new:
        return
    unit = prices().currency if used.measure == "cost" else used.measure
    refuses = budget.is_enforced and used.percent == PERCENTS[-1]
    budget_used(
        message=f"{owner} used {used.percent} % of its budget of {used.limit:,.15g} {unit} in {month}"
        + (f"; the gateway refuses {owner.refused} until the month ends or the budget is raised" if refuses else ""),
        about={
            owner.kind.value: owner.name,
            "month": str(month),
            "measure": used.measure,
            "percent": used.percent,
            "limit": used.limit,
            "enforced": budget.is_enforced,
        },
        now=now,
        **_receivers(owner),
    )


def _columns(owner: Owner) -> dict[str, Any]:
    """Return the columns that say whose a row of budgets or notices is."""
    return {owner.kind.value: team_get(name=owner.name) if owner.kind is OwnerKind.TEAM else owner.name}


def _receivers(owner: Owner) -> dict[str, Any]:
    """Return whose webhooks get notice: the team's, or that of the key or of the service's namespace."""
    if owner.kind is OwnerKind.SERVICE:
        return {"owned": (Owned.NAMESPACE, owner.name.partition("/")[0])}
    return {"team": owner.name if owner.kind is OwnerKind.TEAM else team_of_key(owner.name)}
