"""Task of upgrades of the fleet."""

from celery import shared_task
from django.utils import timezone

from fleet.services.progress import upgrade_advance


@shared_task(name="fleet.tasks.advance", expires=10)
def advance() -> None:
    """Bring the open upgrade on."""
    upgrade_advance(now=timezone.now())
