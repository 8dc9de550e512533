"""Starting what runs of a service anew, without a change of what it serves."""

from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict
from deployments import hints
from deployments.history import Kind
from deployments.models import InferenceService
from deployments.recording import changing
from deployments.services.serving import service_named


@transaction.atomic
def service_restart(*, namespace: str, name: str, actor: str, now: datetime) -> InferenceService:
    """Have every replica of the service replaced by one that begins anew, one after the other in each revision.

    The replica before goes once the one that follows it is ready, so there are never fewer than there should be.

    Raises:
        NotFound: no such service.
        Conflict: it is being deleted.
    """
    found = service_named(namespace, name)
    with changing(found.pk, now=now) as change:
        service = change.service
        if service.deleting_at is not None:
            raise Conflict(f"service {service} is being deleted, so its replicas are not started anew")
        service.restart_number += 1
        change.event(Kind.SERVICE_RESTARTED, f"{actor} has the replicas of {service} restarted, one after the other")
        audit_record(
            actor=actor,
            action="service.restart",
            target=f"services/{namespace}/{name}",
            now=now,
            before={"restart_number": service.restart_number - 1},
            after={"restart_number": service.restart_number},
        )
    hints.reconcile_soon(found.pk)
    return service
