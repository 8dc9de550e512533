"""Tells the worker that a service wants a tick soon. Only a hint: what gets lost, the next sweep finds."""

import logging
from collections.abc import Sequence
from functools import partial

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)
_EXPIRES_S = 10


def reconcile_soon(service_id: int) -> None:
    """Ask for a tick once the present transaction is committed."""
    transaction.on_commit(lambda: _send(service_id))


def deliver_soon(delivery_ids: Sequence[int]) -> None:
    """Ask for webhooks to be told once the present transaction is committed."""
    for delivery_id in delivery_ids:
        transaction.on_commit(partial(_send_delivery, delivery_id))


def _send_delivery(delivery_id: int) -> None:
    try:
        current_app.send_task("deployments.tasks.deliver", args=[delivery_id], expires=_EXPIRES_S, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("the hint for delivery %s was not sent, the next sweep will find it: %s", delivery_id, error)


def _send(service_id: int) -> None:
    try:
        current_app.send_task("deployments.tasks.reconcile", args=[service_id], expires=_EXPIRES_S, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("the hint for service %s was not sent, the next sweep will find it: %s", service_id, error)
