"""Webhooks: who wants to be told of which events, and what was told to whom.

A delivery is written in the transaction of its event. A task posts it with no transaction open; it is found again by a
sweep until it was taken or given up. Taking one is a conditional UPDATE that also says when the next may try, so of two
workers one posts, and one that died is followed by the next try.

    PENDING --2xx--> DELIVERED
    PENDING --else--> PENDING, later each time --after the last try--> FAILED
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import QuerySet

from accounts.services import audit_record
from common.errors import InvalidInput, NotFound
from deployments import hints
from deployments.history import Kind
from deployments.models import Event, Webhook, WebhookDelivery
from integrations.webhooks import check_url

TEST = "Test"
PENDING, DELIVERED, FAILED = "PENDING", "DELIVERED", "FAILED"
RETRY_AFTER = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 120, 600, 1800, 7200, 21600))
TRY_TAKES = timedelta(seconds=60)
KEPT_FOR = timedelta(days=14)
_MAX_WEBHOOKS = 50
_MAX_DESCRIPTION = 300


@dataclass(frozen=True, slots=True)
class Try:
    """The right to post one delivery once."""

    delivery_id: int
    number: int
    url: str
    body: bytes
    secret: str
    event: str


def signature_of(secret: str, body: bytes, now: datetime) -> str:
    """Return what stands in `Fairlead-Signature`: `t=<Unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`."""
    moment = str(int(now.timestamp()))
    digest = hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


def webhook_query() -> QuerySet[Webhook]:
    """Return all webhooks."""
    return Webhook.objects.all()


def webhook_get(*, webhook_id: int) -> Webhook:
    """Return one webhook; raises NotFound."""
    webhook = Webhook.objects.filter(pk=webhook_id).first()
    if webhook is None:
        raise NotFound(f"there is no webhook {webhook_id}")
    return webhook


def delivery_query(*, webhook_id: int) -> QuerySet[WebhookDelivery]:
    """Return what was and will be told to the webhook; raises NotFound."""
    return WebhookDelivery.objects.filter(webhook=webhook_get(webhook_id=webhook_id))


def deliveries_due(*, now: datetime, limit: int) -> list[int]:
    """Return the ids of deliveries whose next try is due, longest waiting first."""
    due = WebhookDelivery.objects.filter(status=PENDING, next_try_at__lte=now).order_by("next_try_at", "pk")
    return list(due.values_list("pk", flat=True)[:limit])


@transaction.atomic
def webhook_create(*, url: str, events: Sequence[str], description: str, actor: str, now: datetime) -> Webhook:
    """Make a webhook with a secret of its own, which the caller is shown once."""
    check_url(url)
    unknown = sorted(set(events) - {*Kind})
    if not events or unknown:
        found = f"{unknown[0][:60]!r}, which is no event" if unknown else "empty"
        raise InvalidInput(f"events is {found}; expected some of {', '.join(Kind)}", field="events")
    if len(description) > _MAX_DESCRIPTION:
        raise InvalidInput(f"description has more than {_MAX_DESCRIPTION} characters", field="description")
    if Webhook.objects.count() >= _MAX_WEBHOOKS:
        raise InvalidInput(f"there are {_MAX_WEBHOOKS} webhooks already, which is the most; delete one first")
    wanted = sorted(set(events))
    webhook = Webhook.objects.create(
        url=url,
        events=wanted,
        description=description,
        secret="whsec_" + secrets.token_urlsafe(32),
        created_at=now,
        created_by=actor,
    )
    after = {"url": url, "events": wanted, "description": description}
    audit_record(actor=actor, action="webhook.create", target=f"webhooks/{webhook.pk}", now=now, after=after)
    return webhook


@transaction.atomic
def webhook_delete(*, webhook_id: int, actor: str, now: datetime) -> None:
    """Delete the webhook with its deliveries; what was not told yet is not told any more."""
    webhook = webhook_get(webhook_id=webhook_id)
    before = {"url": webhook.url, "events": webhook.events, "description": webhook.description}
    webhook.delete()
    audit_record(actor=actor, action="webhook.delete", target=f"webhooks/{webhook_id}", now=now, before=before)


@transaction.atomic
def webhook_test(*, webhook_id: int, actor: str, now: datetime) -> WebhookDelivery:
    """Tell the webhook of an event that is none, and return the delivery."""
    webhook = webhook_get(webhook_id=webhook_id)
    payload = {"event": TEST, "at": now.isoformat(), "message": f"{actor} tests this webhook"}
    delivery = WebhookDelivery.objects.create(
        webhook=webhook, event=TEST, payload=payload, next_try_at=now, created_at=now
    )
    audit_record(
        actor=actor, action="webhook.test", target=f"webhooks/{webhook_id}", now=now, detail={"delivery": delivery.pk}
    )
    hints.deliver_soon([delivery.pk])
    return delivery


def deliveries_queue(service: str, events: Iterable[Event]) -> None:
    """Write a delivery for each of the service's new events and each webhook that wants it; in their transaction."""
    webhooks = list(Webhook.objects.all())
    rows = [
        WebhookDelivery(
            webhook=webhook,
            event=event.kind,
            payload={
                "event": event.kind,
                "at": event.at.isoformat(),
                "message": event.message,
                "service": service,
                "seq": event.seq,
                "revision": event.revision or None,
                "rollout": event.rollout_id,
            },
            next_try_at=event.at,
            created_at=event.at,
        )
        for webhook in webhooks
        for event in events
        if event.kind in webhook.events
    ]
    if rows:
        hints.deliver_soon([row.pk for row in WebhookDelivery.objects.bulk_create(rows)])


def try_begin(*, delivery_id: int, now: datetime) -> Try | None:
    """Return the right to post the delivery now, or None where it is not due or somebody else has it."""
    row = WebhookDelivery.objects.select_related("webhook").filter(pk=delivery_id).first()
    if row is None or row.status != PENDING or row.next_try_at > now:
        return None
    taken = WebhookDelivery.objects.filter(pk=row.pk, status=PENDING, tries=row.tries, next_try_at=row.next_try_at)
    if not taken.update(tries=row.tries + 1, next_try_at=now + TRY_TAKES):
        return None
    body = json.dumps({"id": row.pk, **row.payload}, separators=(",", ":")).encode()
    return Try(row.pk, row.tries + 1, row.webhook.url, body, row.webhook.secret, row.event)


def try_end(*, of: Try, status: int | None, answer: str, now: datetime) -> None:
    """Write how the try ended; nothing where a later try has begun meanwhile.

    Args:
        status: the HTTP status; None where no answer came.
        answer: the beginning of the answer, or why there is none.
    """
    delivered = status is not None and 200 <= status < 300
    last = of.number > len(RETRY_AFTER)
    WebhookDelivery.objects.filter(pk=of.delivery_id, status=PENDING, tries=of.number).update(
        status=DELIVERED if delivered else FAILED if last else PENDING,
        answer_status=status,
        answer=answer,
        next_try_at=now if delivered or last else now + RETRY_AFTER[of.number - 1],
        finished_at=now if delivered or last else None,
    )


def deliveries_forget(*, now: datetime) -> None:
    """Delete finished deliveries that are older than they are kept."""
    WebhookDelivery.objects.filter(finished_at__lte=now - KEPT_FOR).delete()
