"""Usage page: a month's totals, days, services and keys, of what the viewer may see or narrowed to one; its budget."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, may, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from accounts.models import ApiToken
from accounts.services.teams import team_query
from common.errors import InvalidInput, NotFound, NotPermitted
from common.http.downloads import Attachment
from common.http.error_pages import leave
from usage.auth import place_to_see, place_to_set
from usage.domain.budget import LEAST_COST, MOST_COST, MOST_REQUESTS, Limits, Owner, OwnerKind
from usage.domain.month import Month
from usage.domain.report import DEFAULT_GROUPS, Line, total
from usage.selectors import last_read, last_stored, usage_query
from usage.selectors.budgets import is_used_up, limits_of, owner_check, used_by
from usage.selectors.csv_file import csv_pieces
from usage.selectors.reports import Asked, busiest, prices, usage_report
from usage.services.budgets import budget_set

_DAY_WIDTH = 10
_HIGHEST = 60
_MOST_ROWS = 100
"""Services and keys on the page; the CSV has all."""

Number = TypeVar("Number", int, float)


@dataclass(frozen=True, slots=True)
class Bar:
    """One day's bar: its place and height in the drawing, and what it shows."""

    day: str
    requests: int
    x: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Row:
    """Usage of a key at a service."""

    team: str
    service: str
    key: str
    used: Line


@dataclass(frozen=True, slots=True)
class Share:
    """What was used of one limit of a budget."""

    name: str
    used: float | None
    limit: float
    percent: int


@never_cache
@require_safe
@page_scope(Scope.READ)
def usage_page(request: HttpRequest) -> HttpResponse:
    """Show the usage of a month."""
    token = page_token(request)
    asked = _asked(request)
    if asked.team:
        require(token, Scope.READ, Place.team(asked.team))
    rows = usage_query(token=token)
    lines, has_more = busiest(rows, asked, _MOST_ROWS)
    days = usage_report(rows, asked, ("day",))
    owner = _owner(token, asked)
    limits = limits_of(owner) if owner else Limits()
    used = used_by(owner, asked.month) if owner else None
    now = Month.of(timezone.now())
    narrowed = {name: value for name, value in _narrowing(asked).items() if value}
    context = {
        "month": asked.month,
        "earlier": asked.month.later(-1),
        "later": asked.month.later(1) if asked.month != now else None,
        "asked": asked,
        "narrowed": urlencode(narrowed),
        "owner": owner,
        "teams": team_query(token=token).order_by("name").values_list("name", flat=True),
        "rows": _rows(lines),
        "most": _MOST_ROWS if has_more else None,
        "total": total(usage_report(rows, asked, ())),
        "bars": _bars(days),
        "width": _DAY_WIDTH * (asked.month.end - asked.month.start).days,
        "height": _HIGHEST,
        "first_day": asked.month.start.date(),
        "last_day": (asked.month.end - timedelta(days=1)).date(),
        "currency": prices().currency,
        "limits": limits,
        "shares": () if used is None else _shares(limits, used),
        "is_refused": used is not None and asked.month == now and limits.is_enforced and is_used_up(limits, used),
        "may_set": owner is not None and may(token, Scope.ADMIN, place_to_set(owner)),
        "reading": last_read(),
        "stored_at": last_stored(),
        "query": urlencode({"month": str(asked.month), **narrowed}),
    }
    return render(request, "usage/usage.html", context)


@never_cache
@require_safe
@page_scope(Scope.READ)
def usage_export(request: HttpRequest) -> HttpResponseBase:
    """Send what the page shows as CSV, by day."""
    by = ("day", *DEFAULT_GROUPS)
    asked = _asked(request)
    pieces = csv_pieces(usage_report(usage_query(token=page_token(request)), asked, by), by, prices().currency)
    return Attachment(pieces, filename=f"usage-{asked.month}.csv", content_type="text/csv; charset=utf-8")


@require_POST
@page_scope(Scope.ADMIN)
def budget_action(request: HttpRequest, kind: str, name: str) -> HttpResponse:
    """Set the budget of a team, a key or a service, or delete it; an empty field is no limit."""
    if kind not in [*OwnerKind] or (kind == OwnerKind.SERVICE) != (name.count("/") == 1):
        raise NotFound(f"there is no {kind[:20]} {name[:150]}")
    owner = Owner(OwnerKind(kind), name)
    require(page_token(request), Scope.ADMIN, place_to_set(owner))
    limits = Limits()
    if request.POST.get("change") != "delete":
        limits = Limits(
            _limit(request, "requests", int, 1, MOST_REQUESTS),
            _limit(request, "cost", float, LEAST_COST, MOST_COST),
            _limit(request, "rows", int, 1, MOST_REQUESTS),
            is_enforced=request.POST.get("enforce") == "on",
        )
    budget_set(owner=owner, limits=limits, actor=page_actor(request), now=timezone.now())
    messages.success(request, f"{owner.kind.capitalize()} {name} has no budget now." if limits.is_empty else "Saved.")
    return leave(request, f"{reverse('deployments:usage')}?{urlencode({kind: name}, safe='/')}")


def _limit(request: HttpRequest, name: str, kind: type[Number], least: float, most: float) -> Number | None:
    text = request.POST.get(name, "").strip()
    if not text:
        return None
    try:
        value = kind(text) if text.isascii() and len(text) < 20 else 0
    except ValueError:
        value = 0
    if not least <= value <= most:
        sort = "whole number" if kind is int else "number"
        raise InvalidInput(
            f"{name} is {text[:40]!r}; expected a {sort} from {least:g} to {most:,.0f}, or nothing", field=name
        )
    return value


def _asked(request: HttpRequest) -> Asked:
    month = request.GET.get("month", "").strip()
    names = (request.GET.get(name, "").strip() for name in ("team", "service", "key"))
    return Asked(Month.parse(month) if month else Month.of(timezone.now()), *names)


def _narrowing(asked: Asked) -> dict[str, str]:
    return {"team": asked.team, "service": asked.service, "key": asked.key}


def _owner(token: ApiToken, asked: Asked) -> Owner | None:
    """Return whose budget the page has: the key's, else the service's, else the team's; None for what has none."""
    if asked.key:
        owner = Owner.key(asked.key)
    elif asked.service.count("/") == 1:
        owner = Owner(OwnerKind.SERVICE, asked.service)
    elif asked.team and not asked.service:
        owner = Owner.team(asked.team)
    else:
        return None
    try:
        require(token, Scope.READ, place_to_see(owner))
        owner_check(owner)
    except (NotFound, NotPermitted):
        return None  # such as the console's own key, and services that were deleted
    return owner


def _rows(lines: Sequence[Line]) -> list[Row]:
    """Return the lines by team, service and key."""
    rows = []
    for line in lines:
        team, service, key = line.group
        rows.append(Row(team, service, key, line))
    return rows


def _bars(days: Sequence[Line]) -> list[Bar]:
    """Return a bar for each day with requests; the highest fills the drawing."""
    most = max((line.requests for line in days), default=0) or 1
    bars = []
    for line in days:
        (day,) = line.group
        height = max(_HIGHEST * line.requests / most, 1.0)
        bars.append(Bar(day, line.requests, _DAY_WIDTH * (int(day[-2:]) - 1), _HIGHEST - height, height))
    return bars


def _shares(limits: Limits, used: Line) -> list[Share]:
    found = (
        ("Requests", used.requests, limits.requests),
        ("Rows", used.rows, limits.rows),
        ("Cost", used.cost, limits.cost),
    )
    return [
        Share(name, amount, limit, int((amount or 0) * 100 / limit))
        for name, amount, limit in found
        if limit is not None
    ]
