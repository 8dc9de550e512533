"""Job hints: best-effort Celery tasks that carry an id; a sweep finds every job whose hint is lost."""

import logging
from typing import Any

from celery import Task
from kombu.exceptions import ChannelError, KombuError

logger = logging.getLogger(__name__)


def send(task: "Task[Any, Any]", *args: int | str) -> None:
    """Have a worker run `task` soon; where the broker is down, log it and leave the job to the sweep."""
    try:
        task.apply_async(args=args, retry=False)
    except (KombuError, ChannelError, OSError) as error:
        logger.warning("the broker did not take %s%r; the next sweep will: %s", task.name, args, error)
