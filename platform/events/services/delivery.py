"""Webhook delivery: one row per event and webhook, posted until accepted or given up.

A delivery is written in the transaction of its event. A task posts it with no transaction open; a sweep finds it until
it is accepted or given up. A claim is a conditional UPDATE that also sets the time of the next try: of two workers one
posts, and after a crash the next try follows.

    PENDING --2xx--> DELIVERED
    PENDING --else--> PENDING, later each time --after the last try--> FAILED
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from accounts.domain.roles import Owned
from accounts.models import ApiToken
from accounts.selectors import owning_team
from common.encryption import unseal
from events.domain.kinds import Kind, UpgradeKind
from events.models import Event, Webhook, WebhookDelivery
from integrations.outbound import signature_of
from jobs.services.hints import send_on_commit
from registry.domain.approval import Approval
from registry.domain.version_lifecycle import Status
from registry.models import ModelVersion

SECRET = "secret of a webhook"  # noqa: S105 - what it is sealed as
TEST = "Test"
CONFIRM = "ConfirmRollout"
"""Not an event: webhooks registered for it decide whether a rollout continues (`reconcile.participants.gates`)."""
OF_VERSIONS = {Status.READY: "VersionReady", Status.REJECTED: "VersionRejected"}
OF_DECISIONS = {Approval.APPROVED: "VersionApproved", Approval.DECLINED: "VersionDeclined"}
TOKEN_MADE = "TokenMadeForAnother"  # noqa: S105 - the name of an event, not a secret
BUDGET_USED = "BudgetUsed"
EVENTS: tuple[str, ...] = (
    *Kind,
    *OF_VERSIONS.values(),
    *OF_DECISIONS.values(),
    TOKEN_MADE,
    BUDGET_USED,
    *UpgradeKind,
    CONFIRM,
)
PENDING, DELIVERED, FAILED = "PENDING", "DELIVERED", "FAILED"
RETRY_AFTER = tuple(timedelta(seconds=seconds) for seconds in (10, 30, 120, 600, 1800, 7200, 21600))
TRY_TAKES = timedelta(seconds=60)
KEPT_FOR = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Notice:
    """Notice of an event, as webhooks receive it.

    Attributes:
        about: the subject of the event, as in the message.
        owner: the namespace or model whose team may receive it; None for events of the installation.
        team: the team that may receive it, where it is the team's own.
    """

    event: str
    at: datetime
    message: str
    about: Mapping[str, object]
    owner: tuple[Owned, str] | None = None
    team: str = ""

    @property
    def payload(self) -> dict[str, object]:
        """Return the message without its id."""
        return {"event": self.event, "at": self.at.isoformat(), "message": self.message, **self.about}


@dataclass(frozen=True, slots=True)
class Try:
    """Claim to post one delivery once."""

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
    """Return the notices of a cluster's events."""
    return [Notice(event.kind, event.at, event.message, {"cluster": name, "seq": event.seq}) for event in events]


def version_checked(version: ModelVersion, status: Status, reason: str, now: datetime) -> None:
    """Queue that a version's check ended; the registry calls it in the transaction of the outcome."""
    model = version.model.name
    message = f"model {model} version {version.number} is {status.value}" + (f": {reason}" if reason else "")
    about = {"model": model, "version": version.number}
    deliveries_queue([Notice(OF_VERSIONS[status], now, message, about, (Owned.MODEL, model))])


def version_decided(version: ModelVersion) -> None:
    """Queue that a user approved or declined a version; the registry calls it in the transaction of the decision."""
    decision, model, at = Approval(version.approval), version.model.name, version.approval_at
    if at is None:
        return  # no decision was made
    why = f": {version.approval_comment}" if version.approval_comment else ""
    message = f"model {model} version {version.number} was {decision} by {version.approval_by}{why}"
    about = {"model": model, "version": version.number, "by": version.approval_by}
    deliveries_queue([Notice(OF_DECISIONS[decision], at, message, about, (Owned.MODEL, model))])


def token_made_for_another(token: ApiToken, now: datetime) -> None:
    """Queue that a user made a token for another one; accounts call it in the transaction that makes the token."""
    user, by = token.user.username, token.made_by
    message = f"{by} made the token {token.name} with scope {token.scope} for {user}; it cannot approve or reject"
    about = {"token": token.pk, "user": user, "by": by}
    deliveries_queue([Notice(TOKEN_MADE, now, message, about)])


def budget_used(
    *, message: str, about: Mapping[str, object], now: datetime, team: str = "", owned: tuple[Owned, str] | None = None
) -> None:
    """Queue that a share of a budget was used; in the transaction that notes that notice was given.

    Args:
        team, owned: the team that may receive it, or what that team owns.
    """
    deliveries_queue([Notice(BUDGET_USED, now, message, about, owned, team)])


def deliver_soon(delivery_ids: Sequence[int]) -> None:
    """Request deliveries once the present transaction is committed."""
    for delivery_id in delivery_ids:
        send_on_commit("deployments.tasks.deliver", delivery_id, "delivery")


def deliveries_queue(notices: Sequence[Notice]) -> None:
    """Write a delivery per notice and subscribed webhook that may receive it; in the notices' transaction."""
    webhooks = list(Webhook.objects.filter(enabled=True).select_related("team"))
    rows = [
        WebhookDelivery(
            webhook=webhook, event=notice.event, payload=notice.payload, next_try_at=notice.at, created_at=notice.at
        )
        for notice in notices
        for webhook in _listening(webhooks, notice)
    ]
    if rows:
        deliver_soon([row.pk for row in WebhookDelivery.objects.bulk_create(rows)])


def _listening(webhooks: Iterable[Webhook], notice: Notice) -> list[Webhook]:
    wanting = [webhook for webhook in webhooks if notice.event in webhook.events]
    if all(webhook.team is None for webhook in wanting):
        return wanting
    team: str | None = notice.team or None
    if notice.owner is not None:
        team = owning_team(kind=notice.owner[0], name=notice.owner[1])
    return [webhook for webhook in wanting if webhook.team is None or webhook.team.name == team]


def deliveries_due(*, now: datetime, limit: int) -> list[int]:
    """Return the ids of deliveries whose next try is due, oldest first."""
    due = WebhookDelivery.objects.filter(status=PENDING, next_try_at__lte=now).order_by("next_try_at", "pk")
    return list(due.values_list("pk", flat=True)[:limit])


def try_begin(*, delivery_id: int, now: datetime) -> Try | None:
    """Claim the delivery; returns None where it is not due or another worker holds it."""
    row = WebhookDelivery.objects.select_related("webhook").filter(pk=delivery_id).first()
    if row is None or row.status != PENDING or row.next_try_at > now:
        return None
    taken = WebhookDelivery.objects.filter(pk=row.pk, status=PENDING, tries=row.tries, next_try_at=row.next_try_at)
    if not taken.update(tries=row.tries + 1, next_try_at=now + TRY_TAKES):
        return None
    # A redelivery keeps the id of the first delivery, by which a receiver recognises it.
    body = json.dumps({"id": row.pk, **row.payload}, separators=(",", ":")).encode()
    return Try(row.pk, row.tries + 1, row.webhook.url, body, row.event, row.webhook.sealed_secret)


def try_end(*, of: Try, status: int | None, answer: str, now: datetime) -> None:
    """Record the outcome of a try; does nothing where a later try has begun meanwhile.

    Args:
        status: the HTTP status; None without a response.
        answer: the beginning of the response, or why it is missing.
    """
    delivered = status is not None and 200 <= status < 300
    # Tests are not retried: the user sees the outcome and tests again.
    last = of.event == TEST or of.number > len(RETRY_AFTER)
    WebhookDelivery.objects.filter(pk=of.delivery_id, status=PENDING, tries=of.number).update(
        status=DELIVERED if delivered else FAILED if last else PENDING,
        answer_status=status,
        answer=answer,
        next_try_at=now if delivered or last else now + RETRY_AFTER[of.number - 1],
        finished_at=now if delivered or last else None,
    )


def deliveries_give_up(*, webhook: Webhook, why: str, now: datetime) -> None:
    """End the webhook's pending deliveries."""
    waiting = WebhookDelivery.objects.filter(webhook=webhook, status=PENDING)
    waiting.update(status=FAILED, answer=why, next_try_at=now, finished_at=now)


def deliveries_forget(*, now: datetime) -> None:
    """Delete finished deliveries past their retention."""
    WebhookDelivery.objects.filter(finished_at__lte=now - KEPT_FOR).delete()
