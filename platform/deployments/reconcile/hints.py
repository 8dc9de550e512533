"""Hints to other processes that work is due. Best effort: the next sweep finds the work of a lost hint."""

import logging
from collections.abc import Sequence
from functools import partial

from celery import current_app
from django.conf import settings
from django.db import transaction
from kombu.exceptions import ChannelError, KombuError

logger = logging.getLogger(__name__)
_EXPIRES_S = 10


def reconcile_soon(service_id: int) -> None:
    """Request a tick once the present transaction is committed."""
    transaction.on_commit(partial(_send, "reconcile", service_id, "service"))


def deliver_soon(delivery_ids: Sequence[int]) -> None:
    """Request webhook deliveries once the present transaction is committed."""
    for delivery_id in delivery_ids:
        transaction.on_commit(partial(_send, "deliver", delivery_id, "delivery"))


def ask_soon(question_ids: Sequence[int]) -> None:
    """Request calls of step webhooks once the present transaction is committed."""
    for question_id in question_ids:
        transaction.on_commit(partial(_send, "ask", question_id, "question"))


def watch_soon() -> None:
    """Have `fairlead up` start the watcher of clusters once the present transaction is committed.

    Elsewhere the operator runs that process, and the folder does not exist.
    """
    transaction.on_commit(_want_watches)


def _want_watches() -> None:
    folder = settings.HOME / "run"
    if not folder.is_dir():
        return
    try:
        (folder / "watches").touch()
    except OSError as error:
        logger.warning("clusters are watched from the next start of `fairlead up` on: %s", error)


def _send(task: str, row_id: int, what: str) -> None:
    try:
        current_app.send_task(f"deployments.tasks.{task}", args=[row_id], expires=_EXPIRES_S, retry=False)
    except (KombuError, ChannelError, OSError) as error:
        logger.warning("the hint for %s %s was not sent, the next sweep will find it: %s", what, row_id, error)
