"""Reconciler of InferenceService objects: each is the service file of a service that follows it.

    object --its file differs from what was applied last--> applied --> status, Events
    deleted --> its service drains --> the finalizer goes, and the object with it

What was applied is remembered by its digest, so that a rollback by the rollout's analysis lasts until the object says
something else.
"""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from clusters.models import Cluster
from common.errors import Conflict, NotFound
from custom_resources.domain.objects import FINALIZER, POLICY, Json, Object, digest, service_file, spec_of_file
from custom_resources.models import ResourceObject
from custom_resources.reconcile.rows import KEPT_EVENTS, Apply, attempt, following, is_due
from custom_resources.views.kserve_status import kserve_status
from custom_resources.views.status import service_status
from deployments.domain.phases import ServicePhase
from deployments.domain.service_state.owner import Owner, stored_owner
from deployments.models import InferenceService
from deployments.selectors.permissions import check_model_of_team, storage_uri_of
from deployments.selectors.services import service_detail
from deployments.services import service_delete
from deployments.services.files.file_preflight import file_planned
from deployments.services.ownership import check_owner
from deployments.views.shapes import ServiceView
from events.models import Event
from integrations.clusters.kubernetes.custom_resources import KSERVE, CustomResources

logger = logging.getLogger(__name__)
KIND = "InferenceService"
_WARNINGS = ("Degraded", "Failed", "Refused", "Aborted")
_DRAINS = timedelta(seconds=2)


def service_follow(
    cluster: Cluster,
    objects: CustomResources,
    namespace: str,
    name: str,
    *,
    clock: Callable[[], datetime],
    kind: str = KIND,
) -> None:
    """Bring the service of an object to what the object says, and the object's status to what the service is.

    Args:
        kind: Fairlead's own, or KServe's.

    Raises:
        Unavailable: the cluster cannot be reached.
    """
    item = objects.get(kind, namespace, name)
    row = following(cluster, kind, namespace, name)
    if item is None:
        if row is not None:
            _forget(row, owner=Owner(cluster.name, namespace, name, row.uid), now=clock())
        return
    found = Object.of(item)
    # What KServe's kind has no field for could not be written into its objects.
    owner = Owner(cluster.name, namespace, name, found.uid, found.adopts and kind == KIND)
    if row is None or row.uid != found.uid:
        service = None if row is None else row.service
        row = row or ResourceObject(cluster=cluster, kind=kind, namespace=namespace, name=name)
        row.uid, row.digest, row.service, row.written, row.event_seq = found.uid, "", service, -1, 0
    if found.is_leaving:
        _leave(found, row, owner, objects, now=clock())
        return
    if FINALIZER not in found.finalizers:
        objects.change(kind, namespace, name, _metadata(found, (*found.finalizers, FINALIZER)))
    policy = found.annotations.get(POLICY, "") if kind == KSERVE else ""
    now, file = clock(), service_file(found, cluster.name, policy=policy)
    said = digest(found, file)
    if is_due(row, said, now):
        attempt(row, said, partial(_planned, found, row, file, owner, now=now), now=now)
    else:
        _adopt(found, row, objects)
    _show(found, row, objects, now=clock())


def _planned(found: Object, row: ResourceObject, file: Json, owner: Owner, *, now: datetime) -> Apply:
    """Check the object's file, and return what applies it."""
    _check_free(found, owner)
    check_model_of_team(storage_uri_of(file), found.namespace, found.name)
    planned = file_planned(
        document=file, namespace=found.namespace, name=found.name, actor=_actor(owner), now=now, by=owner
    )

    def apply() -> None:
        row.service, _ = planned.carry_out()

    return apply


def _check_free(found: Object, owner: Owner) -> None:
    """Raise Conflict where a service of the name is there that does not follow the object, and is not to."""
    service = InferenceService.objects.filter(namespace=found.namespace, name=found.name).first()
    if service is None:
        return
    if stored_owner(service.owner_object) is None and not found.takes_over:
        raise Conflict(
            f"service {service} is there already, and was not made by this object; annotate the object with "
            'fairlead.dev/take-over: "true" to have the service follow it, or give the object another name'
        )
    check_owner(service, owner)


def _adopt(found: Object, row: ResourceObject, objects: CustomResources) -> None:
    """Write what API and pages changed of the service into an object that says so."""
    service = row.service
    if not found.adopts or row.kind != KIND or service is None or row.problem or service.changes == row.written:
        return
    spec = spec_of_file(service.document)
    if spec == found.spec:
        return
    gone = dict.fromkeys(found.spec.keys() - spec.keys())
    changes = {"metadata": {"resourceVersion": found.version}, "spec": {**gone, **spec}}
    objects.change(KIND, found.namespace, found.name, changes)


def _show(found: Object, row: ResourceObject, objects: CustomResources, *, now: datetime) -> None:
    """Write the object's status and the service's events where they are not as they were."""
    view = _view(row, now)
    _write_status(found, row, view, row.problem, objects, now=now)
    if view is not None and (view.changes, view.event_seq) != (row.written, row.event_seq):
        _report(found, row, view, objects)
        row.written, row.event_seq = view.changes, view.event_seq
        row.save(update_fields=["written", "event_seq"])


def _write_status(
    found: Object,
    row: ResourceObject,
    view: ServiceView | None,
    problem: str,
    objects: CustomResources,
    *,
    now: datetime,
) -> None:
    of_kind = kserve_status if row.kind == KSERVE else service_status
    status = of_kind(view, problem, before=found.status, generation=found.generation, now=now)
    if status != found.status:
        objects.set_status(row.kind, found.namespace, found.name, status)


def _view(row: ResourceObject, now: datetime) -> ServiceView | None:
    service = row.service
    if service is None:
        return None
    try:
        return service_detail(namespace=service.namespace, name=service.name, now=now)
    except NotFound:
        return None


def _report(found: Object, row: ResourceObject, view: ServiceView, objects: CustomResources) -> None:
    """Create Kubernetes Events of the service's newest events."""
    item = objects.get(row.kind, found.namespace, found.name)
    if item is None:
        return
    newer = Event.objects.filter(service=view.id, seq__gt=max(row.event_seq, view.event_seq - KEPT_EVENTS))
    for each in newer.order_by("seq"):
        is_warning = each.kind.endswith(_WARNINGS)
        name = f"{found.name}.{found.uid[:8]}.{each.seq}"
        objects.event(
            row.kind, item, name=name, reason=each.kind, message=each.message, is_warning=is_warning, at=each.at
        )


def _leave(found: Object, row: ResourceObject, owner: Owner, objects: CustomResources, *, now: datetime) -> None:
    """Drain the service of a deleted object; then let the object go."""
    if FINALIZER not in found.finalizers:
        return
    if _delete(row, owner, now=now):
        rest = tuple(each for each in found.finalizers if each != FINALIZER)
        objects.change(row.kind, found.namespace, found.name, _metadata(found, rest))
        if row.pk is not None:
            row.delete()
        return
    row.retry_at = now + _DRAINS
    row.save()
    _write_status(found, row, _view(row, now), "", objects, now=now)


def _forget(row: ResourceObject, *, owner: Owner, now: datetime) -> None:
    """Drain the service of an object that is gone without a word, as one whose finalizer was removed by hand."""
    if _delete(row, owner, now=now):
        row.delete()
    else:
        row.retry_at = now + _DRAINS
        row.save(update_fields=["retry_at"])


def _delete(row: ResourceObject, owner: Owner, *, now: datetime) -> bool:
    """Delete the service that follows the object; return whether it is gone, or follows another one."""
    service = row.service
    its = None if service is None else stored_owner(service.owner_object)
    if service is None or its is None or not its.is_same(owner):
        return True
    if service.phase != ServicePhase.DELETING:
        service_delete(namespace=service.namespace, name=service.name, actor=_actor(owner), now=now, by=owner)
    return False


def _metadata(found: Object, finalizers: tuple[str, ...]) -> dict[str, object]:
    return {"metadata": {"resourceVersion": found.version, "finalizers": list(finalizers)}}


def _actor(owner: Owner) -> str:
    return f"kubernetes:{owner.cluster}/{owner.namespace}/{owner.name}"
