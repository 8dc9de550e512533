"""Tells the worker that a service wants a tick soon. Only a hint: what gets lost, the next sweep finds."""

import logging

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)
_EXPIRES_S = 10


def reconcile_soon(service_id: int) -> None:
    """Ask for a tick once the present transaction is committed."""
    transaction.on_commit(lambda: _send(service_id))


def _send(service_id: int) -> None:
    try:
        current_app.send_task("deployments.tasks.reconcile", args=[service_id], expires=_EXPIRES_S, retry=False)
    except (OperationalError, OSError) as error:
        logger.warning("the hint for service %s was not sent, the next sweep will find it: %s", service_id, error)
