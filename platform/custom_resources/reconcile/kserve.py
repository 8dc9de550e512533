"""Reconciler of KServe's InferenceService objects, where KServe's own controller does not run.

    its controller runs --> not taken: an Event says so
    else                --> as an InferenceService of Fairlead, with a status in KServe's fields

Both would write the status, and each would make a service of its own. An object that was taken before KServe's
controller came keeps its service as it is; deleted, it drains.
"""

from collections.abc import Callable
from datetime import datetime

from clusters.models import Cluster
from common.errors import NotPermitted
from custom_resources.domain.objects import Object
from custom_resources.models import ResourceObject
from custom_resources.reconcile.rows import following
from custom_resources.reconcile.services import service_follow
from integrations.clusters.kubernetes.custom_resources import KSERVE, CustomResources


def kserve_follow(
    cluster: Cluster, objects: CustomResources, namespace: str, name: str, *, clock: Callable[[], datetime]
) -> None:
    """Follow an object as `service_follow` does, unless KServe's controller does; raises Unavailable."""
    item = objects.get(KSERVE, namespace, name)
    found = None if item is None else Object.of(item)
    why = "" if found is None or found.is_leaving else _refusal(objects)
    if item is None or found is None or not why:
        service_follow(cluster, objects, namespace, name, clock=clock, kind=KSERVE)
        return
    row = following(cluster, KSERVE, namespace, name)
    row = row or ResourceObject(cluster=cluster, kind=KSERVE, namespace=namespace, name=name, uid=found.uid)
    if row.problem != why:
        event = f"{name}.{found.uid[:8]}.not-taken"
        objects.event(KSERVE, item, name=event, reason="NotTaken", message=why, is_warning=True, at=clock())
        row.problem, row.digest, row.retry_at = why, "", None
        row.save()
    if row.service is not None and row.written != row.service.changes:
        row.written = row.service.changes  # its changes are shown nowhere
        row.save(update_fields=["written"])


def _refusal(objects: CustomResources) -> str:
    """Return why no object of KServe's is taken now; empty where they are."""
    try:
        controller = objects.kserve_controller()
    except NotPermitted as error:
        return f"whether KServe's controller runs cannot be seen ({error.message}); bind fairlead-kserve-objects"
    if not controller:
        return ""
    return (
        f"KServe's own controller runs here, as Deployment {controller}, so Fairlead does not take the object; make it "
        "one of apiVersion fairlead.dev/v1alpha1, or remove that controller"
    )
