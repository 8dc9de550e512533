"""Budgets of teams: the most that their keys should use in a month, and notices of what is used of them.

A budget refuses nothing. Notice at 80 and 100 % is given once a month each: its row is written in one transaction with
its webhook deliveries.
"""

from datetime import datetime

from django.db import transaction

from accounts.models import Team
from accounts.services import audit_record
from accounts.services.teams import team_get
from events.services.delivery import budget_used
from usage.domain.budget import Crossing, Limits, crossed
from usage.domain.month import Month
from usage.domain.report import Line, total
from usage.models import Budget, BudgetNotice, HourlyUsage
from usage.selectors.reports import Asked, prices, usage_report


def limits_of(team: Team) -> Limits:
    """Return the limits of a team; those of a team without a budget are None."""
    found = Budget.objects.filter(team=team).first()
    return Limits() if found is None else Limits(found.requests, found.cost)


def used_by(team: str, month: Month) -> Line:
    """Return what the keys of a team used in a month."""
    return total(usage_report(HourlyUsage.objects.all(), Asked(month, team=team), ("team",)))


@transaction.atomic
def budget_set(*, team: str, limits: Limits, actor: str, now: datetime) -> None:
    """Set the limits of a team; without any its budget is deleted. Idempotent. Raises NotFound."""
    found = Team.objects.select_for_update().get(pk=team_get(name=team).pk)
    before = limits_of(found)
    if before == limits:
        return
    if limits == Limits():
        Budget.objects.filter(team=found).delete()
    else:
        values = {"requests": limits.requests, "cost": limits.cost}
        Budget.objects.update_or_create(team=found, defaults=values)
    # Notice of another limit is given again.
    changed = [name for name in ("requests", "cost") if getattr(before, name) != getattr(limits, name)]
    BudgetNotice.objects.filter(team=found, month=Month.of(now).first, measure__in=changed).delete()
    audit_record(
        actor=actor,
        action="team.budget",
        target=f"teams/{team}",
        now=now,
        before={"requests": before.requests, "cost": before.cost},
        after={"requests": limits.requests, "cost": limits.cost},
    )


def budgets_check(*, now: datetime) -> None:
    """Give notice of each share of a budget that was used this month, once."""
    month = Month.of(now)
    for budget in Budget.objects.select_related("team"):
        used = used_by(budget.team.name, month)
        for each in crossed(Limits(budget.requests, budget.cost), requests=used.requests, cost=used.cost):
            _give_notice(budget.team, month, each, now)


@transaction.atomic
def _give_notice(team: Team, month: Month, used: Crossing, now: datetime) -> None:
    Team.objects.select_for_update().get(pk=team.pk)  # one worker at a time
    _, is_new = BudgetNotice.objects.get_or_create(
        team=team, month=month.first, measure=used.measure, percent=used.percent, defaults={"at": now}
    )
    if not is_new:
        return
    unit = prices().currency if used.measure == "cost" else "requests"
    budget_used(
        team=team.name,
        message=f"team {team.name} used {used.percent} % of its budget of {used.limit:,.15g} {unit} in {month}",
        about={"month": str(month), "measure": used.measure, "percent": used.percent, "limit": used.limit},
        now=now,
    )
