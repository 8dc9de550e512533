"""Delivery of webhooks."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from common.errors import Unavailable
from events.services import delivery
from integrations.outbound import post

_WEBHOOK_TIMEOUT_S = 10.0


@shared_task(name="deployments.tasks.deliver", expires=60)
def deliver(delivery_id: int) -> None:
    """Send one event to a webhook, unless it is not due or another worker is sending it."""
    attempt = delivery.try_begin(delivery_id=delivery_id, now=timezone.now())
    if attempt is None:
        return
    status: int | None = None
    try:
        status, answer = post(
            attempt.url,
            attempt.body,
            attempt.headers(timezone.now()),
            allowed=settings.EGRESS_ALLOWED_NETWORKS,
            timeout_s=_WEBHOOK_TIMEOUT_S,
        )
    except Unavailable as error:
        answer = error.message
    delivery.try_end(of=attempt, status=status, answer=answer, now=timezone.now())
