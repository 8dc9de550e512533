"""The page of the fleet, and what its buttons do."""

from django.contrib import messages
from django.db.models import Case, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from accounts.auth.access import Place, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from clusters.selectors import cluster_query
from common.db.count import count_up_to
from common.errors import InvalidInput, NotFound
from common.http.error_pages import leave
from fleet.domain.waves import Phase, State
from fleet.models import FleetUpgrade
from fleet.selectors.upgrades import outdated_services, upgrade_counts, upgrade_query, upgrade_services
from fleet.services.upgrades import (
    AT_ONCE,
    PERCENT,
    upgrade_cancel,
    upgrade_pause,
    upgrade_resume,
    upgrade_start,
)

_SHOWN, _EARLIER_SHOWN = 50, 5
_MOVES = {"pause": upgrade_pause, "resume": upgrade_resume, "cancel": upgrade_cancel}
_DONE = {
    "pause": "Paused; rollouts in progress go on.",
    "resume": "Resumed.",
    "cancel": "Cancelled; rollouts in progress go on.",
}


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def fleet_page(request: HttpRequest) -> HttpResponse:
    """Show the services that are behind, the open upgrade, and earlier ones."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    upgrade = upgrade_query().filter(is_open=True).first()
    behind = outdated_services().order_by("service__namespace", "service__name")
    if upgrade is not None:
        behind = behind.exclude(service__in=upgrade_services(upgrade=upgrade).values("service"))
    context = {
        "behind": behind[:_SHOWN],
        "behind_count": count_up_to(behind),
        "shown": _SHOWN,
        "clusters": cluster_query().order_by("name"),
        "percent": PERCENT,
        "at_once": AT_ONCE,
        "earlier": upgrade_query().exclude(is_open=True).order_by("-id")[:_EARLIER_SHOWN],
        **({} if upgrade is None else _of_upgrade(upgrade)),
    }
    return render(request, "fleet/fleet.html", context)


@require_POST
@page_scope(Scope.ADMIN)
def upgrade_start_action(request: HttpRequest) -> HttpResponse:
    """Start an upgrade; go back to the page."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    asked = request.POST
    upgrade_start(
        cluster=asked.get("cluster", ""),
        namespace=asked.get("namespace", "").strip(),
        percent=_number(asked.get("percent", ""), "percent"),
        at_once=_number(asked.get("at_once", ""), "at_once"),
        actor=page_actor(request),
        now=timezone.now(),
    )
    messages.success(request, "The upgrade starts with one service.")
    return leave(request, "deployments:fleet")


@require_POST
@page_scope(Scope.ADMIN)
def upgrade_action(request: HttpRequest, upgrade_id: int, verb: str) -> HttpResponse:
    """Pause, resume or cancel an upgrade; go back to the page."""
    require(page_token(request), Scope.ADMIN, Place.installation())
    if verb not in _MOVES:
        raise NotFound(f"an upgrade has no action {verb}")
    _MOVES[verb](upgrade_id=upgrade_id, actor=page_actor(request), now=timezone.now())
    messages.success(request, _DONE[verb])
    return leave(request, "deployments:fleet")


def _of_upgrade(upgrade: FleetUpgrade) -> dict[str, object]:
    counts = upgrade_counts(upgrade=upgrade)
    return {
        "upgrade": upgrade,
        "is_paused": upgrade.phase == Phase.PAUSED,
        "counts": [(state.value, count) for state, count in counts.items() if count],
        "over": sum(count for state, count in counts.items() if state.is_over),
        "total": sum(counts.values()),
        "rows": upgrade_services(upgrade=upgrade)
        .filter(state__in=[State.UPGRADING, State.FAILED, State.WAITING])
        .order_by(Case(When(state=State.WAITING, then=1), default=0), "wave", "pk")[:_SHOWN],
    }


def _number(text: str, field: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > 4:
        raise InvalidInput(f"{field} is {text[:20]!r}; expected a whole number", field=field)
    return int(text)
