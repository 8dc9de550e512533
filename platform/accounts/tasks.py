"""What accounts does by itself: forgets answers that are kept for requests that may come again."""

from celery import shared_task
from django.utils import timezone

from accounts.services import answers_forget


@shared_task
def forget_answers() -> None:
    """Delete answers that are older than they are promised to be kept."""
    answers_forget(now=timezone.now())
