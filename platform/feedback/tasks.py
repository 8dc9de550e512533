"""Tasks of feedback."""

import logging

from celery import shared_task
from django.utils import timezone

from feedback.services.answers import answers_forget
from feedback.services.drift import drift_forget

logger = logging.getLogger(__name__)


@shared_task(name="feedback.tasks.forget", expires=60)
def forget() -> None:
    """Delete answers past their days, with their labels and scores, and old shapes."""
    drift_forget(timezone.now())
    if deleted := answers_forget(now=timezone.now()):
        logger.info("deleted %s kept answers past their days", deleted)
