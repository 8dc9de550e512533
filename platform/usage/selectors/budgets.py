"""Budgets as they are now: the limits of an owner, what it used of them, and who used up a quota."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Q

from accounts.services.teams import team_get
from common.errors import NotFound
from integrations.clusters.base import PREVIEW_SUFFIX
from usage import hooks
from usage.domain.budget import PERCENTS, Crossing, Limits, Owner, OwnerKind, crossed
from usage.domain.month import Month
from usage.domain.report import Line, total
from usage.models import Budget, HourlyUsage
from usage.selectors.reports import Asked, usage_report


@dataclass(frozen=True, slots=True)
class UsedUp:
    """Names of those whose enforced budget of the month is used up, each in order.

    Attributes:
        services: `<namespace>/<name>`.
    """

    teams: tuple[str, ...]
    keys: tuple[str, ...]
    services: tuple[str, ...]


def rows_of(owner: Owner) -> dict[str, Any]:
    """Return the condition for the rows of an owner in the tables of budgets and notices."""
    return {"team__name" if owner.kind is OwnerKind.TEAM else owner.kind.value: owner.name}


def owner_of(budget: Budget) -> Owner:
    """Return whose budget it is."""
    if budget.team is not None:
        return Owner.team(budget.team.name)
    kind = OwnerKind.SERVICE if budget.key is None else OwnerKind.KEY
    return Owner(kind, budget.key or budget.service or "")


def owner_check(owner: Owner) -> None:
    """Raise NotFound unless the owner is there; a service that was deleted is as long as it has a budget."""
    if owner.kind is OwnerKind.TEAM:
        team_get(name=owner.name)
    elif owner.kind is OwnerKind.KEY:
        team_of_key(owner.name)
    else:
        is_there = any(hooks.has_service(*owner.name.split("/", 1)))
        if not is_there and not Budget.objects.filter(**rows_of(owner)).exists():
            raise NotFound(f"there is no service {owner.name[:301]}")


def team_of_key(name: str) -> str:
    """Return the name of the team whose key it is; raises NotFound."""
    team = next(filter(None, hooks.team_of_key(name)), "")
    if not team:
        raise NotFound(f"there is no key {name[:80]!r} that you may see")
    return team


def limits_of(owner: Owner) -> Limits:
    """Return the limits of an owner; those of one without a budget are None."""
    found = Budget.objects.filter(**rows_of(owner)).first()
    return Limits() if found is None else limits_in(found)


def limits_in(budget: Budget) -> Limits:
    """Return the limits in a row."""
    return Limits(budget.requests, budget.cost, budget.rows, budget.is_enforced)


def used_by(owner: Owner, month: Month) -> Line:
    """Return what an owner used in a month: requests that reached a replica."""
    return used_by_each([owner], month)[owner]


def used_by_each(owners: Iterable[Owner], month: Month) -> dict[Owner, Line]:
    """Return the same of many, with one query for each kind; a service's preview, logged as another one, counts too."""
    found = {owner: Line(()) for owner in owners}
    rows = HourlyUsage.objects.exclude(revision="")
    for kind in OwnerKind:
        names = [owner.name for owner in found if owner.kind is kind]
        if not names:
            continue
        for line in usage_report(rows.filter(_used_by(kind, names)), Asked(month), (kind.value,)):
            (name,) = line.group
            for each in {name, name.removesuffix(PREVIEW_SUFFIX) if kind is OwnerKind.SERVICE else name}:
                owner = Owner(kind, each)
                if owner in found:
                    found[owner] = total([found[owner], line])
    return found


def crossed_by(limits: Limits, used: Line) -> list[Crossing]:
    """Return the shares of the limits that are used."""
    return list(crossed(limits, requests=used.requests, rows=used.rows, cost=used.cost))


def is_used_up(limits: Limits, used: Line) -> bool:
    """Return whether a limit is used up."""
    return any(each.percent == PERCENTS[-1] for each in crossed_by(limits, used))


def used_up(*, now: datetime) -> UsedUp:
    """Return whose enforced budget of the present month (UTC) is used up."""
    rows = Budget.objects.filter(is_enforced=True, used_up_in=Month.of(now).first)
    found = list(rows.values_list("team__name", "key", "service"))
    return UsedUp(*(tuple(sorted(filter(None, (row[column] for row in found)))) for column in range(3)))


def _used_by(kind: OwnerKind, names: list[str]) -> Q:
    """Return the condition for the usage of these, and maybe of others."""
    if kind is not OwnerKind.SERVICE:
        return Q(**{f"{kind}__in": names})
    pairs = [name.split("/", 1) for name in names]
    services = {f"{name}{suffix}" for _, name in pairs for suffix in ("", PREVIEW_SUFFIX)}
    return Q(namespace__in={namespace for namespace, _ in pairs}, service__in=services)
