"""Rows of objects that are followed, and when one that was refused is tried again."""

from datetime import datetime, timedelta

from clusters.models import Cluster
from custom_resources.models import ResourceObject

KEPT_EVENTS = 20
"""Most events of a service that are reported at once; a cluster keeps Events for an hour."""
_FIRST, _LONGEST = timedelta(seconds=15), timedelta(minutes=5)


def following(cluster: Cluster, kind: str, namespace: str, name: str) -> ResourceObject | None:
    """Return the row of an object; None before it is followed."""
    rows = ResourceObject.objects.select_related("service", "model_import", "model_version__model")
    return rows.filter(cluster=cluster, kind=kind, namespace=namespace, name=name).first()


def retry_after(row: ResourceObject, problem: str, *, now: datetime, is_new: bool) -> datetime:
    """Return when what was refused is tried again: a model may come, a policy be saved. Ever less often."""
    if is_new or row.retry_at is None or problem != row.problem:
        return now + _FIRST
    return now + _LONGEST
