"""Cleanup tasks: delete expired idempotent responses and ended sessions."""

from importlib import import_module

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from accounts.services import answers_forget
from accounts.services.invitations import invitations_forget
from accounts.services.oidc_users import sessions_forget


@shared_task(name="accounts.tasks.forget_answers")
def forget_answers() -> None:
    """Delete responses older than their promised retention."""
    answers_forget(now=timezone.now())


@shared_task(name="accounts.tasks.forget_sessions")
def forget_sessions() -> None:
    """Delete the sessions of browsers that ended, the tokens that were made for them alone, and old invitations."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    sessions_forget(now=timezone.now())
    invitations_forget(now=timezone.now())
