"""Periodic tasks of users and the audit log.

They chain the audit log and send it to its sinks, check users at the provider, and delete expired responses and ended
sessions.
"""

import logging
from importlib import import_module

from celery import shared_task
from django.conf import settings
from django.utils import timezone

from accounts.domain.audit_sinks import SinkName
from accounts.services import answers_forget
from accounts.services.audit_chain import audit_chain
from accounts.services.audit_sending import audit_send
from accounts.services.identity_checks import identities_check, identities_due
from accounts.services.invitations import invitations_forget
from accounts.services.oidc_users import sessions_forget
from common.errors import FairleadError
from integrations import oidc

logger = logging.getLogger(__name__)


@shared_task(name="accounts.tasks.chain_audit", expires=60)
def chain_audit() -> None:
    """Chain the audit entries that were committed since the last time."""
    audit_chain(now=timezone.now())


@shared_task(name="accounts.tasks.send_audit", expires=60)
def send_audit(sink: str) -> None:
    """Send the audit entries that the sink has not taken yet, unless another worker does."""
    audit_send(sink=SinkName(sink), clock=timezone.now)


@shared_task(name="accounts.tasks.check_identities", expires=600)
def check_identities() -> None:
    """Ask the provider whether the accounts of users are still there; where it does not answer, try later."""
    provider = oidc.configured()
    if provider is None or not identities_due(issuer=provider.issuer, now=timezone.now()).exists():
        return
    try:
        renew = oidc.renewal(provider)
    except FairleadError as error:
        logger.warning("no user was confirmed: %s", error.message)
        return
    identities_check(issuer=provider.issuer, renew=renew, clock=timezone.now)


@shared_task(name="accounts.tasks.forget_answers", expires=600)
def forget_answers() -> None:
    """Delete responses older than their promised retention."""
    answers_forget(now=timezone.now())


@shared_task(name="accounts.tasks.forget_sessions", expires=600)
def forget_sessions() -> None:
    """Delete the sessions of browsers that ended, the tokens that were made for them alone, and old invitations."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
    sessions_forget(now=timezone.now())
    invitations_forget(now=timezone.now())
