"""Webhook pages: subscriptions, a test delivery with its response, and the delivery log."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts.auth.access import Place, administered, is_administrator, require
from accounts.auth.permissions import page_actor, page_scope, page_token
from accounts.domain.scopes import Scope
from accounts.services.teams import team_query
from common.errors import InvalidInput
from common.http.error_pages import is_fragment, leave, newest
from events.models import WebhookDelivery
from events.services import subscriptions
from events.services.delivery import DELIVERED, EVENTS, FAILED, PENDING
from events.services.subscriptions import Teams, WebhookFields

_DELIVERIES_SHOWN = 20
_STATUSES = (FAILED, PENDING, DELIVERED)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@page_scope(Scope.ADMIN)
def webhook_list_page(request: HttpRequest) -> HttpResponse:
    """Show the webhooks that the caller may manage; on POST create one and show its secret, this once."""
    made = _create(request) if request.method == "POST" else None
    token, teams = page_token(request), _teams(request)
    of = team_query(token=token).order_by("name")
    rows, older = newest(request, subscriptions.webhook_query(teams=teams))
    context = {
        "rows": rows,
        "older": older,
        "made": made,
        "groups": event_groups(EVENTS),
        "teams": [team.name for team in (of if teams is None else of.filter(name__in=teams))],
        "may_for_all": is_administrator(token),
    }
    in_place = made is not None and is_fragment(request)
    return render(request, "deployments/_webhook_answer.html" if in_place else "deployments/webhook_list.html", context)


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
@page_scope(Scope.ADMIN)
def webhook_detail_page(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Show a webhook with its latest deliveries; on POST change it."""
    if request.method == "POST":
        subscriptions.webhook_change(webhook_id=webhook_id, fields=_fields(request.POST), **_by(request))
        messages.success(request, "Saved.")
        return leave(request, "deployments:webhook-detail", webhook_id)
    return _detail(request, webhook_id)


@never_cache
@require_POST
@page_scope(Scope.ADMIN)
def webhook_secret_action(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Replace the secret and show the new one, this once."""
    made = subscriptions.webhook_renew_secret(webhook_id=webhook_id, **_by(request))
    if is_fragment(request):
        return render(request, "deployments/_webhook_secret.html", {"made": made})
    return _detail(request, webhook_id, made=made)


@require_POST
@page_scope(Scope.ADMIN)
def webhook_switch_action(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Enable or disable a webhook."""
    enabled = request.POST.get("enabled") == "true"
    subscriptions.webhook_change(webhook_id=webhook_id, fields={"enabled": enabled}, **_by(request))
    messages.success(request, "It receives events again." if enabled else "It receives no more events.")
    return leave(request, "deployments:webhook-detail", webhook_id)


@require_POST
@page_scope(Scope.ADMIN)
def webhook_delete_action(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Delete a webhook with its log."""
    subscriptions.webhook_delete(webhook_id=webhook_id, **_by(request))
    messages.success(request, f"Webhook {webhook_id} is deleted.")
    return leave(request, "deployments:webhook-list")


@require_POST
@page_scope(Scope.ADMIN)
def webhook_test_action(request: HttpRequest, webhook_id: int) -> HttpResponse:
    """Send the webhook a test event."""
    return _after_delivery(request, subscriptions.webhook_test(webhook_id=webhook_id, **_by(request)))


@require_POST
@page_scope(Scope.ADMIN)
def delivery_repeat_action(request: HttpRequest, webhook_id: int, delivery_id: int) -> HttpResponse:
    """Redeliver an event."""
    return _after_delivery(
        request, subscriptions.delivery_repeat(webhook_id=webhook_id, delivery_id=delivery_id, **_by(request))
    )


@never_cache
@require_safe
@page_scope(Scope.ADMIN)
def delivery_fragment(request: HttpRequest, webhook_id: int, delivery_id: int) -> HttpResponse:
    """Show the state of a delivery; a pending one polls by itself."""
    found = subscriptions.delivery_get(webhook_id=webhook_id, delivery_id=delivery_id, teams=_teams(request))
    return _answer(request, found)


def _create(request: HttpRequest) -> subscriptions.CreatedWebhook:
    team = request.POST.get("team", "") or None
    require(page_token(request), Scope.ADMIN, Place.installation() if team is None else Place.team(team))
    fields = _fields(request.POST)
    return subscriptions.webhook_create(
        url=fields["url"],
        events=fields["events"],
        description=fields["description"],
        team=team,
        actor=page_actor(request),
        now=timezone.now(),
    )


def _fields(form: QueryDict) -> WebhookFields:
    return {
        "url": form.get("url", "").strip(),
        "events": form.getlist("events"),
        "description": form.get("description", "").strip(),
    }


def _detail(request: HttpRequest, webhook_id: int, *, made: subscriptions.CreatedWebhook | None = None) -> HttpResponse:
    teams = _teams(request)
    webhook = subscriptions.webhook_get(webhook_id=webhook_id, teams=teams)
    status = request.GET.get("status", "")
    if status and status not in _STATUSES:
        raise InvalidInput(f"status is {status[:40]!r}; expected one of {', '.join(_STATUSES)}", field="status")
    narrowed = {"status": status} if status else {}
    found = WebhookDelivery.objects.filter(webhook=webhook, **narrowed)
    deliveries, older = newest(request, found, _DELIVERIES_SHOWN)
    context = {
        "webhook": webhook,
        "deliveries": [
            (row, json.dumps({"id": row.pk, **row.payload}, indent=2, ensure_ascii=False)) for row in deliveries
        ],
        "older": older,
        "status": status,
        "statuses": _STATUSES,
        "groups": event_groups(EVENTS),
        "made": made,
    }
    return render(request, "deployments/webhook_detail.html", context)


def _after_delivery(request: HttpRequest, delivery: WebhookDelivery) -> HttpResponse:
    """Return the delivery, which polls from there, to htmx; redirect others to the page, whose log has it."""
    if is_fragment(request):
        return _answer(request, delivery)
    messages.success(request, "Posting it; the log below shows the answer.")
    return leave(request, "deployments:webhook-detail", delivery.webhook_id)


def _answer(request: HttpRequest, delivery: WebhookDelivery) -> HttpResponse:
    unanswered = delivery.status == PENDING and delivery.answer_status is None and not delivery.answer
    return render(request, "deployments/_delivery.html", {"delivery": delivery, "is_under_way": unanswered})


def _teams(request: HttpRequest) -> Teams:
    return administered(page_token(request))


def _by(request: HttpRequest) -> dict[str, Any]:
    """Return the caller and the time, as the services take them."""
    return {"teams": _teams(request), "actor": page_actor(request), "now": timezone.now()}


_ABOUT = {
    "Rollouts": ("Rollout", "Rollback", "ConfirmRollout"),
    "Services": ("Service", "Revision", "Replica", "Drift"),
    "Models and versions": ("Model", "Version", "Import", "Alias"),
    "Recorded requests": ("Recording", "Replay"),
    "Feedback": ("Answers", "DataDrift"),
    "Clusters": ("Component", "Limit", "Repartition"),
    "Tokens": ("Token",),
    "Budgets": ("Budget",),
    "Upgrades of the fleet": ("Fleet",),
}
"""Prefixes of the names of a group's events."""
_REST = "Others"


@dataclass(frozen=True, slots=True)
class EventGroup:
    """Events of one subject; never empty."""

    title: str
    events: tuple[str, ...]


def event_groups(events: Sequence[str]) -> tuple[EventGroup, ...]:
    """Return every event once, in the given order within its group; events of no group come last."""
    found: dict[str, list[str]] = {title: [] for title in (*_ABOUT, _REST)}
    for event in events:
        found[next((title for title, starts in _ABOUT.items() if event.startswith(starts)), _REST)].append(event)
    return tuple(EventGroup(title, tuple(names)) for title, names in found.items() if names)
