"""Reconciler of Rollout objects: each shows the newest rollout of the service that has its name.

It is made with the first rollout of a service that follows an object, which owns it. `spec.action` names one action:
promote, abort or retry. It is done once for each generation of the object, and taken out of the spec again.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db import transaction

from clusters.models import Cluster
from common.errors import FairleadError
from custom_resources.domain.objects import Object
from custom_resources.models import ResourceObject
from custom_resources.reconcile import services
from custom_resources.reconcile.rows import following
from custom_resources.views.status import rollout_status
from deployments.models import Rollout
from deployments.selectors import rollout_detail
from deployments.services import rollout_abort, rollout_promote, rollout_retry
from integrations.clusters.kubernetes.api.resource_types import INFERENCE_SERVICE
from integrations.clusters.kubernetes.custom_resources import CustomResources

KIND = "Rollout"
_ACTIONS: dict[str, Callable[..., Rollout]] = {
    "promote": rollout_promote,
    "abort": rollout_abort,
    "retry": rollout_retry,
}


def rollout_follow(
    cluster: Cluster, objects: CustomResources, namespace: str, name: str, *, clock: Callable[[], datetime]
) -> None:
    """Do what a Rollout asks for, and write its status; make it where its service has one. Raises Unavailable."""
    of_service = following(cluster, services.KIND, namespace, name)
    item = objects.get(KIND, namespace, name)
    row = following(cluster, KIND, namespace, name)
    newest = None
    if of_service is not None and of_service.service is not None:
        newest = Rollout.objects.filter(service=of_service.service).order_by("-pk").first()
    if item is None:
        if row is not None:
            row.delete()
        owner = objects.get(services.KIND, namespace, name)
        # Of an object that is deleted with its dependents first, the Rollout goes before the service has drained.
        if newest is not None and owner is not None and not Object.of(owner).is_leaving:
            objects.create(KIND, _made(owner))
        return
    if newest is None:
        return
    found = Object.of(item)
    if row is None or row.uid != found.uid:
        row = row or ResourceObject(cluster=cluster, kind=KIND, namespace=namespace, name=name)
        row.uid, row.acted, row.last_action, row.service = found.uid, 0, None, newest.service
        row.save()
    _act(found, row, newest, objects, now=clock())
    view = rollout_detail(rollout_id=newest.pk, now=clock())
    last = row.last_action or found.status.get("lastAction")
    status = rollout_status(view, last, before=found.status, generation=found.generation, now=clock())
    if status != found.status:
        objects.set_status(KIND, namespace, name, status)


def _made(owner: dict[str, Any]) -> dict[str, Any]:
    metadata = owner["metadata"]
    reference = {
        "apiVersion": INFERENCE_SERVICE.api_version,
        "kind": INFERENCE_SERVICE.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    named = {"namespace": metadata["namespace"], "name": metadata["name"], "ownerReferences": [reference]}
    return {"metadata": named, "spec": {}}


def _act(found: Object, row: ResourceObject, newest: Rollout, objects: CustomResources, *, now: datetime) -> None:
    """Do the object's action once, and take it out of the spec."""
    action = str(found.spec.get("action") or "")
    if not action:
        return
    # One transaction, so that a process that dies leaves no action that is lost or done again: after a second promotion
    # the next pause would be left, too.
    with transaction.atomic():
        if ResourceObject.objects.filter(pk=row.pk, acted__lt=found.generation).update(acted=found.generation):
            row.last_action = _done(action, newest, actor=_actor(row), now=now)
            row.save(update_fields=["last_action"])
    objects.change(
        KIND, found.namespace, found.name, {"metadata": {"resourceVersion": found.version}, "spec": {"action": None}}
    )


def _done(action: str, rollout: Rollout, *, actor: str, now: datetime) -> dict[str, Any]:
    """Do an action, and return what became of it."""
    message = ""
    try:
        _ACTIONS[action](rollout_id=rollout.pk, actor=actor, now=now)
    except KeyError:
        message = f"spec.action is {action[:60]!r}; expected promote, abort or retry"
    except FairleadError as error:
        message = error.message
    return {"action": action, "at": f"{now:%Y-%m-%dT%H:%M:%SZ}", "rollout": rollout.pk, "message": message}


def _actor(row: ResourceObject) -> str:
    return f"kubernetes:{row.cluster.name}/{row.namespace}/{row.name}"
