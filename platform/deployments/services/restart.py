"""Restart, stop and resume of a service, without a change of what it serves."""

from datetime import datetime

from django.db import transaction

from accounts.services import audit_record
from common.errors import Conflict
from deployments.domain.service_file import file_stopped
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService
from deployments.reconcile import hints
from deployments.reconcile.service_change import changing
from deployments.services.ownership import check_owner
from deployments.services.services import service_named, spec_of
from deployments.services.stop import follow_stop
from events.domain.kinds import Kind


@transaction.atomic
def service_restart(*, namespace: str, name: str, actor: str, now: datetime) -> InferenceService:
    """Replace every replica of the service by a new one, one after the other in each revision (rolling restart).

    A replica ends once its successor is ready, so there are never fewer than desired.

    Raises:
        NotFound: no such service.
        Conflict: it is being deleted, is stopped, or is in a model pool.
    """
    found = service_named(namespace, name)
    with changing(found.pk, now=now) as change:
        service = change.service
        if service.deleting_at is not None:
            raise Conflict(f"service {service} is being deleted, so its replicas are not restarted")
        if service.stopped:
            raise Conflict(f"service {service} is stopped, so there are no replicas to restart; resume it")
        if (stable := change.revision(Role.STABLE)) is not None and stable.pool and not stable.own_replicas:
            raise Conflict(f"service {service} has no replicas of its own; restart its model pool {stable.pool}")
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


@transaction.atomic
def service_stop(*, namespace: str, name: str, actor: str, now: datetime) -> InferenceService:
    """Stop the service: no requests, no replicas; its file, revisions and history stay, and a rollout is superseded.

    Its file then has KServe's annotation for this. Stopping it again changes nothing.

    Raises:
        NotFound: no such service.
        Conflict: it is being deleted.
    """
    return _set_stopped(namespace, name, stopped=True, actor=actor, now=now)


@transaction.atomic
def service_resume(*, namespace: str, name: str, actor: str, now: datetime) -> InferenceService:
    """Resume a stopped service, which serves as soon as its first replica is ready; raises as `service_stop` does."""
    return _set_stopped(namespace, name, stopped=False, actor=actor, now=now)


def _set_stopped(namespace: str, name: str, *, stopped: bool, actor: str, now: datetime) -> InferenceService:
    found = service_named(namespace, name)
    with changing(found.pk, now=now) as change:
        service = change.service
        if service.deleting_at is not None:
            raise Conflict(f"service {service} is being deleted, so it is neither stopped nor resumed")
        check_owner(service)
        if service.stopped == stopped:
            return service
        service.document = file_stopped(service.document, stopped=stopped)
        follow_stop(change, spec_of(service), actor=actor)
        audit_record(
            actor=actor,
            action="service.stop" if stopped else "service.resume",
            target=f"services/{namespace}/{name}",
            now=now,
            before={"stopped": not stopped},
            after={"stopped": stopped},
        )
    hints.reconcile_soon(found.pk)
    return service
