"""Sends Celery tasks as hints: a task carries an id and every job is found again by a sweep, so one may get lost."""

import logging
from typing import Any

from celery import Task
from kombu.exceptions import ChannelError, KombuError

logger = logging.getLogger(__name__)


def send(task: "Task[Any, Any]", *args: int | str) -> None:
    """Ask a worker to run `task` soon; where the broker is away, say so in the log and leave it to the sweep."""
    try:
        task.apply_async(args=args, retry=False)
    except (KombuError, ChannelError, OSError) as error:
        logger.warning("the broker did not take %s%r; the next sweep will: %s", task.name, args, error)
