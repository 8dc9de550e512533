"""Webhook subscriptions: registration, secrets, test deliveries and redelivery. `events.services.delivery` posts.

A webhook belongs to a team, whose admins manage it and whose namespaces and models it receives events of, or to the
installation. `teams` are the teams whose webhooks the caller may manage (`accounts.auth.access.administered`): None for
all.
"""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from typing import TypedDict

from django.db import transaction
from django.db.models import QuerySet

from accounts.services import audit_record
from accounts.services.teams import team_get
from common.encryption import seal
from common.errors import Conflict, InvalidInput, NotFound
from common.randomness import new_secret
from events.models import Webhook, WebhookDelivery
from events.services.delivery import EVENTS, PENDING, SECRET, TEST, deliver_soon, deliveries_give_up
from integrations.outbound import check_url

_MAX_WEBHOOKS = 50
_MAX_DESCRIPTION = 300
Teams = AbstractSet[str] | None


class WebhookFields(TypedDict, total=False):
    """Desired fields of a webhook; those left out stay."""

    url: str
    events: Sequence[str]
    description: str
    enabled: bool


@dataclass(frozen=True, slots=True)
class CreatedWebhook:
    """A webhook with its new secret, which is shown once."""

    webhook: Webhook
    secret: str


def webhook_query(*, teams: Teams) -> QuerySet[Webhook]:
    """Return the webhooks of these teams; for None all, those of the installation included."""
    webhooks = Webhook.objects.select_related("team")
    return webhooks if teams is None else webhooks.filter(team__name__in=teams)


def webhook_get(*, webhook_id: int, teams: Teams) -> Webhook:
    """Return one webhook; raises NotFound."""
    webhook = webhook_query(teams=teams).filter(pk=webhook_id).first()
    if webhook is None:
        raise NotFound(f"there is no webhook {webhook_id} that you may see")
    return webhook


def delivery_query(*, webhook_id: int, teams: Teams) -> QuerySet[WebhookDelivery]:
    """Return the past and pending deliveries of the webhook; raises NotFound."""
    return WebhookDelivery.objects.filter(webhook=webhook_get(webhook_id=webhook_id, teams=teams))


def delivery_get(*, webhook_id: int, delivery_id: int, teams: Teams) -> WebhookDelivery:
    """Return one delivery of the webhook; raises NotFound."""
    delivery = delivery_query(webhook_id=webhook_id, teams=teams).filter(pk=delivery_id).first()
    if delivery is None:
        raise NotFound(f"webhook {webhook_id} has no delivery {delivery_id}; finished ones are kept for 14 days")
    return delivery


@transaction.atomic
def webhook_create(
    *, url: str, events: Sequence[str], description: str, actor: str, now: datetime, team: str | None = None
) -> CreatedWebhook:
    """Create a webhook of the team, or of the installation for None, with its own secret."""
    fields = _checked({"url": url, "events": events, "description": description})
    owner = None if team is None else team_get(name=team)
    if Webhook.objects.filter(team=owner).count() >= _MAX_WEBHOOKS:
        whose = "the installation" if owner is None else f"team {owner}"
        raise InvalidInput(f"{whose} has {_MAX_WEBHOOKS} webhooks already, which is the most; delete one first")
    secret = _new_secret()
    webhook = Webhook.objects.create(
        **fields, team=owner, sealed_secret=seal(secret, purpose=SECRET), created_at=now, created_by=actor
    )
    _audit(webhook, "create", actor, now, after=_fields(webhook))
    return CreatedWebhook(webhook, secret)


@transaction.atomic
def webhook_change(*, webhook_id: int, fields: WebhookFields, teams: Teams, actor: str, now: datetime) -> Webhook:
    """Change the given fields; disabling a webhook ends its pending deliveries."""
    webhook = _locked(webhook_id, teams)
    before = _fields(webhook)
    for name, value in _checked(fields).items():
        setattr(webhook, name, value)
    if (after := _fields(webhook)) == before:
        return webhook
    webhook.save()
    if not webhook.enabled:
        deliveries_give_up(webhook=webhook, why="the webhook was disabled", now=now)
    _audit(webhook, "change", actor, now, before=before, after=after)
    return webhook


@transaction.atomic
def webhook_renew_secret(*, webhook_id: int, teams: Teams, actor: str, now: datetime) -> CreatedWebhook:
    """Rotate the webhook's secret; the new one signs all deliveries from now on."""
    webhook, secret = _locked(webhook_id, teams), _new_secret()
    webhook.sealed_secret = seal(secret, purpose=SECRET)
    webhook.save(update_fields=["sealed_secret"])
    _audit(webhook, "renew_secret", actor, now)
    return CreatedWebhook(webhook, secret)


@transaction.atomic
def webhook_delete(*, webhook_id: int, teams: Teams, actor: str, now: datetime) -> None:
    """Delete the webhook with its deliveries, pending ones included."""
    webhook = _locked(webhook_id, teams)
    _audit(webhook, "delete", actor, now, before=_fields(webhook))
    webhook.delete()


@transaction.atomic
def webhook_test(*, webhook_id: int, teams: Teams, actor: str, now: datetime) -> WebhookDelivery:
    """Send the webhook, enabled or not, a test event, once, and return the delivery."""
    webhook = webhook_get(webhook_id=webhook_id, teams=teams)
    payload = {"event": TEST, "at": now.isoformat(), "message": f"{actor} tests this webhook"}
    delivery = _send(webhook, TEST, payload, now)
    _audit(webhook, "test", actor, now, detail={"delivery": delivery.pk})
    return delivery


@transaction.atomic
def delivery_repeat(*, webhook_id: int, delivery_id: int, teams: Teams, actor: str, now: datetime) -> WebhookDelivery:
    """Redeliver an event under its first delivery's id; returns the new delivery.

    Raises:
        Conflict: the first delivery is still pending.
    """
    first = delivery_get(webhook_id=webhook_id, delivery_id=delivery_id, teams=teams)
    if first.status == PENDING:
        raise Conflict(f"delivery {delivery_id} is still being tried; wait until it was taken or given up")
    delivery = _send(first.webhook, first.event, {"id": first.pk, **first.payload}, now)
    _audit(first.webhook, "redeliver", actor, now, detail={"delivery": delivery.pk, "of": first.pk})
    return delivery


def _send(webhook: Webhook, event: str, payload: Mapping[str, object], now: datetime) -> WebhookDelivery:
    delivery = WebhookDelivery.objects.create(
        webhook=webhook, event=event, payload=payload, next_try_at=now, created_at=now
    )
    deliver_soon([delivery.pk])
    return delivery


def _locked(webhook_id: int, teams: Teams) -> Webhook:
    webhook_get(webhook_id=webhook_id, teams=teams)
    webhook = Webhook.objects.select_for_update(of=("self",)).select_related("team").filter(pk=webhook_id).first()
    return webhook or webhook_get(webhook_id=webhook_id, teams=teams)


def _checked(fields: WebhookFields) -> WebhookFields:
    """Return the fields with their events in order; raises InvalidInput."""
    if "url" in fields:
        check_url(fields["url"])
    if "events" in fields:
        unknown = sorted(set(fields["events"]) - {*EVENTS})
        if not fields["events"]:
            raise InvalidInput("events is empty; choose at least one event", field="events")
        if unknown:
            found = f"{unknown[0][:60]!r}, which is no event"
            raise InvalidInput(f"events has {found}; expected some of {', '.join(EVENTS)}", field="events")
        fields = {**fields, "events": sorted(set(fields["events"]))}
    if len(fields.get("description", "")) > _MAX_DESCRIPTION:
        raise InvalidInput(f"description has more than {_MAX_DESCRIPTION} characters", field="description")
    return fields


def _new_secret() -> str:
    return "whsec_" + new_secret()


def _fields(webhook: Webhook) -> dict[str, object]:
    return {
        "team": None if webhook.team is None else webhook.team.name,
        "url": webhook.url,
        "events": webhook.events,
        "description": webhook.description,
        "enabled": webhook.enabled,
    }


def _audit(webhook: Webhook, verb: str, actor: str, now: datetime, **what: dict[str, object]) -> None:
    audit_record(actor=actor, action=f"webhook.{verb}", target=f"webhooks/{webhook.pk}", now=now, **what)
