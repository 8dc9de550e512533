"""What webhooks are told, and how it is told: a row for each event and webhook, posted until taken or given up.

A delivery is written in the transaction of its event. A task posts it with no transaction open; it is found again by a
sweep until it was taken or given up. Taking one is a conditional UPDATE that also says when the next may try, so of two
workers one posts, and one that died is followed by the next try.

    PENDING --2xx--> DELIVERED
    PENDING --else--> PENDING, later each time --after the last try--> FAILED
"""

import hashlib
import hmac
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.domain.roles import Owned
from accounts.selectors import owning_team
from common.encryption import unseal
from deployments.domain.rollout.event_messages import Kind
from deployments.reconcile import hints
from events.models import Event, Webhook, WebhookDelivery
from registry.domain.approval import Approval
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion

SECRET = "secret of a webhook"  # noqa: S105 - what it is sealed as
TEST = "Test"
CONFIRM = "ConfirmRollout"
"""No event, but what a webhook is registered for that may be asked whether a rollout goes on (`questions`)."""
OF_VERSIONS = {Status.READY: "VersionReady", Status.REJECTED: "VersionRejected"}
OF_DECISIONS = {Approval.APPROVED: "VersionApproved", Approval.DECLINED: "VersionDeclined"}
EVENTS: tuple[str, ...] = (*Kind, *OF_VERSIONS.values(), *OF_DECISIONS.values(), CONFIRM)
PENDING, DELIVERED, FAILED = "PENDING", "DELIVERED", "FAILED"
RETRY_AFTER = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 120, 600, 1800, 7200, 21600))
TRY_TAKES = timedelta(seconds=60)
KEPT_FOR = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Notice:
    """Something that happened, as webhooks are told of it.

    Attributes:
        about: what it happened to, as it stands in the message.
        owner: the namespace or model whose team may know; None for the installation's own.
    """

    event: str
    at: datetime
    message: str
    about: Mapping[str, object]
    owner: tuple[Owned, str] | None = None

    @property
    def payload(self) -> dict[str, object]:
        """Return the message without its id."""
        return {"event": self.event, "at": self.at.isoformat(), "message": self.message, **self.about}


@dataclass(frozen=True, slots=True)
class Try:
    """The right to post one delivery once."""

    delivery_id: int
    number: int
    url: str
    body: bytes
    event: str
    sealed_secret: str

    def headers(self, now: datetime) -> dict[str, str]:
        """Return the headers to post with; raises Unavailable where the secret cannot be read."""
        secret = unseal(self.sealed_secret, purpose=SECRET)
        return {
            "Content-Type": "application/json",
            "User-Agent": "Fairlead-Webhook/1",
            "Fairlead-Event": self.event,
            "Fairlead-Delivery": str(json.loads(self.body)["id"]),
            "Fairlead-Signature": signature_of(secret, self.body, now),
        }


def signature_of(secret: str, body: bytes, now: datetime) -> str:
    """Return what stands in `Fairlead-Signature`: `t=<Unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`."""
    moment = str(int(now.timestamp()))
    digest = hmac.new(secret.encode(), moment.encode() + b"." + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


def of_service(namespace: str, name: str, events: Iterable[Event]) -> list[Notice]:
    """Return the notices of a service's events."""
    return [
        Notice(
            event.kind,
            event.at,
            event.message,
            {
                "service": f"{namespace}/{name}",
                "seq": event.seq,
                "revision": event.revision or None,
                "rollout": event.rollout_id,
                "request_id": event.request_id or None,
            },
            (Owned.NAMESPACE, namespace),
        )
        for event in events
    ]


def of_cluster(name: str, events: Iterable[Event]) -> list[Notice]:
    """Return the notices of a cluster's own events."""
    return [Notice(event.kind, event.at, event.message, {"cluster": name, "seq": event.seq}) for event in events]


def version_checked(version: ModelVersion, status: Status, reason: str, now: datetime) -> None:
    """Queue that a version's check ended; the registry calls it in the transaction of the outcome."""
    model = version.model.name
    message = f"model {model} version {version.number} is {status.value}" + (f": {reason}" if reason else "")
    about = {"model": model, "version": version.number}
    deliveries_queue([Notice(OF_VERSIONS[status], now, message, about, (Owned.MODEL, model))])


def version_decided(version: ModelVersion) -> None:
    """Queue that somebody approved or declined a version; the registry calls it in the transaction of the decision."""
    decision, model, at = Approval(version.approval), version.model.name, version.approval_at
    if at is None:
        return  # nothing was decided
    why = f": {version.approval_comment}" if version.approval_comment else ""
    message = f"model {model} version {version.number} was {decision} by {version.approval_by}{why}"
    about = {"model": model, "version": version.number, "by": version.approval_by}
    deliveries_queue([Notice(OF_DECISIONS[decision], at, message, about, (Owned.MODEL, model))])


def deliveries_queue(notices: Sequence[Notice]) -> None:
    """Write a delivery for each notice and each webhook that wants and may have it; in the notices' transaction."""
    webhooks = list(Webhook.objects.filter(enabled=True).select_related("team"))
    rows = [
        WebhookDelivery(
            webhook=webhook, event=notice.event, payload=notice.payload, next_try_at=notice.at, created_at=notice.at
        )
        for notice in notices
        for webhook in _listening(webhooks, notice)
    ]
    if rows:
        hints.deliver_soon([row.pk for row in WebhookDelivery.objects.bulk_create(rows)])


def _listening(webhooks: Iterable[Webhook], notice: Notice) -> list[Webhook]:
    wanting = [webhook for webhook in webhooks if notice.event in webhook.events]
    if all(webhook.team is None for webhook in wanting):
        return wanting
    team = None if notice.owner is None else owning_team(kind=notice.owner[0], name=notice.owner[1])
    return [webhook for webhook in wanting if webhook.team is None or webhook.team.name == team]


def deliveries_due(*, now: datetime, limit: int) -> list[int]:
    """Return the ids of deliveries whose next try is due, longest waiting first."""
    due = WebhookDelivery.objects.filter(status=PENDING, next_try_at__lte=now).order_by("next_try_at", "pk")
    return list(due.values_list("pk", flat=True)[:limit])


def try_begin(*, delivery_id: int, now: datetime) -> Try | None:
    """Return the right to post the delivery now, or None where it is not due or somebody else has it."""
    row = WebhookDelivery.objects.select_related("webhook").filter(pk=delivery_id).first()
    if row is None or row.status != PENDING or row.next_try_at > now:
        return None
    taken = WebhookDelivery.objects.filter(pk=row.pk, status=PENDING, tries=row.tries, next_try_at=row.next_try_at)
    if not taken.update(tries=row.tries + 1, next_try_at=now + TRY_TAKES):
        return None
    # One that is told again has the id of the first time, by which a receiver knows it.
    body = json.dumps({"id": row.pk, **row.payload}, separators=(",", ":")).encode()
    return Try(row.pk, row.tries + 1, row.webhook.url, body, row.event, row.webhook.sealed_secret)


def try_end(*, of: Try, status: int | None, answer: str, now: datetime) -> None:
    """Write how the try ended; nothing where a later try has begun meanwhile.

    Args:
        status: the HTTP status; None where no answer came.
        answer: the beginning of the answer, or why there is none.
    """
    delivered = status is not None and 200 <= status < 300
    # Whoever tests wants to know now, and tests again.
    last = of.event == TEST or of.number > len(RETRY_AFTER)
    WebhookDelivery.objects.filter(pk=of.delivery_id, status=PENDING, tries=of.number).update(
        status=DELIVERED if delivered else FAILED if last else PENDING,
        answer_status=status,
        answer=answer,
        next_try_at=now if delivered or last else now + RETRY_AFTER[of.number - 1],
        finished_at=now if delivered or last else None,
    )


def deliveries_give_up(*, webhook: Webhook, why: str, now: datetime) -> None:
    """End what the webhook was not told yet."""
    waiting = WebhookDelivery.objects.filter(webhook=webhook, status=PENDING)
    waiting.update(status=FAILED, answer=why, next_try_at=now, finished_at=now)


def deliveries_forget(*, now: datetime) -> None:
    """Delete finished deliveries that are older than they are kept."""
    WebhookDelivery.objects.filter(finished_at__lte=now - KEPT_FOR).delete()
