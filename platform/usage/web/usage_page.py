"""Usage page: a month's totals, days, services and keys, of one team or all that the viewer may see, and budgets."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_scope, page_token
from accounts.domain.scopes import Scope
from accounts.services.teams import team_get, team_query
from common.http.downloads import Attachment
from usage.domain.budget import Limits
from usage.domain.month import Month
from usage.domain.report import DEFAULT_GROUPS, Line, total
from usage.selectors import last_read, usage_query
from usage.selectors.csv_file import csv_pieces
from usage.selectors.reports import Asked, prices, usage_report
from usage.services.budgets import limits_of, used_by

_DAY_WIDTH = 10
_HIGHEST = 60


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
    lines = usage_report(rows, asked, DEFAULT_GROUPS)
    days = usage_report(rows, asked, ("day",))
    limits = limits_of(team_get(name=asked.team)) if asked.team else Limits()
    now = Month.of(timezone.now())
    context = {
        "month": asked.month,
        "earlier": asked.month.later(-1),
        "later": asked.month.later(1) if asked.month != now else None,
        "team": asked.team,
        "teams": team_query(token=token).order_by("name").values_list("name", flat=True),
        "rows": _rows(lines),
        "total": total(lines),
        "bars": _bars(days),
        "width": _DAY_WIDTH * (asked.month.end - asked.month.start).days,
        "height": _HIGHEST,
        "currency": prices().currency,
        "shares": _shares(limits, used_by(asked.team, asked.month)) if asked.team else (),
        "reading": last_read(),
        "query": urlencode({"month": str(asked.month), **({"team": asked.team} if asked.team else {})}),
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


def _asked(request: HttpRequest) -> Asked:
    month = request.GET.get("month", "").strip()
    return Asked(Month.parse(month) if month else Month.of(timezone.now()), team=request.GET.get("team", "").strip())


def _rows(lines: Sequence[Line]) -> list[Row]:
    """Return the lines by team, service and key, the most requests first."""
    rows = []
    for line in sorted(lines, key=lambda each: -each.requests):
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
    found = (("Requests", used.requests, limits.requests), ("Cost", used.cost, limits.cost))
    return [
        Share(name, amount, limit, min(int((amount or 0) * 100 / limit), 999))
        for name, amount, limit in found
        if limit is not None
    ]
