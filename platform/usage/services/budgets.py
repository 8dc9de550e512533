"""Budgets of teams: the most that their keys should use in a month, and notices of what is used of them.

Notice at 80 and 100 % is given once a month each: its row is written in one transaction with its webhook deliveries.
An enforced budget is a quota: while one of its limits is used up, gateways refuse the keys of the team, whose name they
get with the keys of callers (`access.services.gateways`), until the limit is raised or the month ends.

Requests that the gateway refused use up nothing, or a quota could not open again by being raised.
"""

from datetime import date, datetime

from django.db import transaction

from accounts.models import Team
from accounts.services import audit_record
from accounts.services.teams import team_get
from common.errors import InvalidInput
from events.services.delivery import budget_used
from jobs.services.hints import call_on_commit
from usage.domain.budget import MEASURES, PERCENTS, Crossing, Limits, crossed
from usage.domain.month import Month
from usage.domain.report import Line, total
from usage.models import Budget, BudgetNotice, HourlyUsage
from usage.selectors.reports import Asked, prices, usage_report


def limits_of(team: Team) -> Limits:
    """Return the limits of a team; those of a team without a budget are None."""
    found = Budget.objects.filter(team=team).first()
    return Limits() if found is None else _limits(found)


def used_by(team: str, month: Month) -> Line:
    """Return what the keys of a team used in a month: requests that reached a replica."""
    return total(usage_report(HourlyUsage.objects.exclude(revision=""), Asked(month, team=team), ("team",)))


def is_used_up(limits: Limits, used: Line) -> bool:
    """Return whether a limit is used up."""
    return any(each.percent == PERCENTS[-1] for each in _crossed(limits, used))


@transaction.atomic
def budget_set(*, team: str, limits: Limits, actor: str, now: datetime) -> None:
    """Set the limits of a team; without any its budget is deleted. Idempotent.

    Raises:
        NotFound: there is no such team.
        InvalidInput: it is to be enforced without a limit.
    """
    if limits.is_enforced and limits.is_empty:
        raise InvalidInput("a budget without a limit cannot be enforced; set requests, rows or cost", field="enforce")
    found = Team.objects.select_for_update().get(pk=team_get(name=team).pk)
    before = limits_of(found)
    if before == limits:
        return
    month = Month.of(now)
    if limits.is_empty:
        Budget.objects.filter(team=found).delete()
    else:
        values = {measure: getattr(limits, measure) for measure in MEASURES}
        used_up_in = month.first if is_used_up(limits, used_by(team, month)) else None
        values |= {"is_enforced": limits.is_enforced, "used_up_in": used_up_in}
        Budget.objects.update_or_create(team=found, defaults=values)
    # Notice is given again of another limit, and of one that refuses keys from now on.
    enforced = limits.is_enforced and not before.is_enforced
    changed = [measure for measure in MEASURES if enforced or getattr(before, measure) != getattr(limits, measure)]
    BudgetNotice.objects.filter(team=found, month=month.first, measure__in=changed).delete()
    audit_record(
        actor=actor,
        action="team.budget",
        target=f"teams/{team}",
        now=now,
        before=before.values(),
        after=limits.values(),
    )
    _push_soon()


def budgets_check(*, now: datetime) -> None:
    """Give notice of each share of a budget that was used this month, once; mark those that are used up."""
    month = Month.of(now)
    for budget in Budget.objects.select_related("team"):
        limits, used = _limits(budget), used_by(budget.team.name, month)
        used_up_in = month.first if is_used_up(limits, used) else None
        if budget.used_up_in != used_up_in:
            _mark(budget, used_up_in=used_up_in)
        for each in _crossed(limits, used):
            _give_notice(budget.team, month, each, now, is_enforced=limits.is_enforced)


def _limits(budget: Budget) -> Limits:
    return Limits(budget.requests, budget.cost, budget.rows, budget.is_enforced)


def _crossed(limits: Limits, used: Line) -> list[Crossing]:
    return list(crossed(limits, requests=used.requests, rows=used.rows, cost=used.cost))


@transaction.atomic
def _mark(budget: Budget, *, used_up_in: date | None) -> None:
    """Mark a budget, unless its limits have changed meanwhile: `budget_set` has marked it then."""
    same = {measure: getattr(budget, measure) for measure in MEASURES}
    if Budget.objects.filter(pk=budget.pk, **same).update(used_up_in=used_up_in) and budget.is_enforced:
        _push_soon()


def _push_soon() -> None:
    call_on_commit("access.tasks.push_keys", "the teams whose quota is used up")


@transaction.atomic
def _give_notice(team: Team, month: Month, used: Crossing, now: datetime, *, is_enforced: bool) -> None:
    Team.objects.select_for_update().get(pk=team.pk)  # one worker at a time
    _, is_new = BudgetNotice.objects.get_or_create(
        team=team, month=month.first, measure=used.measure, percent=used.percent, defaults={"at": now}
    )
    if not is_new:
        return
    unit = prices().currency if used.measure == "cost" else used.measure
    refuses = is_enforced and used.percent == PERCENTS[-1]
    budget_used(
        team=team.name,
        message=f"team {team.name} used {used.percent} % of its budget of {used.limit:,.15g} {unit} in {month}"
        + ("; the gateway refuses its keys until the month ends or the budget is raised" if refuses else ""),
        about={
            "month": str(month),
            "measure": used.measure,
            "percent": used.percent,
            "limit": used.limit,
            "enforced": is_enforced,
        },
        now=now,
    )
