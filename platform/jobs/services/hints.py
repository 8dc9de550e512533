"""Job hints: best-effort Celery tasks that carry an id; a sweep finds every job whose hint is lost."""

import logging
from functools import partial
from typing import Any

from celery import Task, current_app
from django.db import transaction
from kombu.exceptions import ChannelError, KombuError

logger = logging.getLogger(__name__)
_EXPIRES_S = 10


def send(task: "Task[Any, Any]", *args: int | str) -> None:
    """Have a worker run `task` soon; where the broker is down, log it and leave the job to the sweep."""
    try:
        task.apply_async(args=args, retry=False)
    except (KombuError, ChannelError, OSError) as error:
        logger.warning("the broker did not take %s%r; the next sweep will: %s", task.name, args, error)


def send_on_commit(task: str, row_id: int, what: str) -> None:
    """Have a worker run the task of that name for a row, once the present transaction is committed.

    Args:
        what: the row's kind in the warning where the broker is down.
    """
    transaction.on_commit(partial(_send, task, row_id, what))


def call_on_commit(task: str, what: str) -> None:
    """Have a worker run the task of that name, which takes nothing, once the present transaction is committed.

    Args:
        what: the subject in the warning where the broker is down.
    """
    transaction.on_commit(partial(_call, task, what))


def _call(task: str, what: str) -> None:
    try:
        current_app.send_task(task, expires=_EXPIRES_S, retry=False)
    except (KombuError, ChannelError, OSError) as error:
        logger.warning("the hint for %s was not sent, the next sweep will do it: %s", what, error)


def _send(task: str, row_id: int, what: str) -> None:
    try:
        current_app.send_task(task, args=[row_id], expires=_EXPIRES_S, retry=False)
    except (KombuError, ChannelError, OSError) as error:
        logger.warning("the hint for %s %s was not sent, the next sweep will find it: %s", what, row_id, error)
