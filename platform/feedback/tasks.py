"""Tasks of feedback."""

import logging

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from feedback.services.answers import answers_forget
from feedback.services.drift import drift_forget
from feedback.services.join import labels_join
from feedback.services.labels import labels_forget
from feedback.services.spool import spool_read
from integrations.clusters.local.files import Layout

logger = logging.getLogger(__name__)


@shared_task(name="feedback.tasks.join", expires=10)
def join() -> None:
    """Join labels with the answers of their requests."""
    labels_join(clock=timezone.now)


@shared_task(name="feedback.tasks.forget", expires=60)
def forget() -> None:
    """Delete answers past their days, labels and scores whose time is over, and old shapes."""
    now = timezone.now()
    drift_forget(now)
    if deleted := answers_forget(now=now):
        logger.info("deleted %s kept answers past their days", deleted)
    if deleted := labels_forget(now=now):
        logger.info("deleted %s labels whose time is over", deleted)


@shared_task(name="feedback.tasks.read_spool", expires=10)
def read_spool() -> None:
    """Store the labels that the gateway of this machine took."""
    spool_read(folder=Layout(settings.CLUSTER_FOLDER).feedback)
