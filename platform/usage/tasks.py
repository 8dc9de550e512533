"""Tasks of usage."""

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from integrations.clusters.local.files import Layout
from usage.services.budgets import budgets_check
from usage.services.reading import access_log_read
from usage.services.retention import usage_forget


@shared_task(name="usage.tasks.read_access_log", expires=30)
def read_access_log() -> None:
    """Count what the gateway of this machine logged since the last reading, and give notice of used budgets."""
    now = timezone.now()
    access_log_read(folder=Layout(settings.CLUSTER_FOLDER).access_log, now=now)
    budgets_check(now=now)


@shared_task(name="usage.tasks.forget", expires=600)
def forget() -> None:
    """Delete usage past its retention."""
    usage_forget(now=timezone.now())
