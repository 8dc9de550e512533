"""Rows of objects that are followed: what became of applying one, and when one that was refused is tried again."""

from collections.abc import Callable
from datetime import datetime, timedelta

from clusters.models import Cluster
from common.errors import FairleadError, Unavailable
from custom_resources.models import ResourceObject

KEPT_EVENTS = 20
"""Most events of a service that are reported at once; a cluster keeps Events for an hour."""
_FIRST, _LONGEST = timedelta(seconds=15), timedelta(minutes=5)


def following(cluster: Cluster, kind: str, namespace: str, name: str) -> ResourceObject | None:
    """Return the row of an object; None before it is followed."""
    rows = ResourceObject.objects.select_related("service", "model_import", "model_version__model")
    return rows.filter(cluster=cluster, kind=kind, namespace=namespace, name=name).first()


def is_due(row: ResourceObject, said: str, now: datetime) -> bool:
    """Return whether an object says something else than what was applied last, or is to be tried again."""
    return said != row.digest or (row.retry_at is not None and row.retry_at <= now)


def attempt(row: ResourceObject, said: str, apply: Callable[[], timedelta | None], *, now: datetime) -> None:
    """Apply what an object says, and save what became of it.

    Args:
        said: the digest of what the object says.
        apply: returns after how long it is to be called again; None where nothing is left to do.

    Raises:
        Unavailable: as `apply` does; then nothing is saved, and the object is looked at again.
    """
    try:
        again = apply()
    except Unavailable:
        raise
    except FairleadError as error:
        problem = " ".join((error.message, *error.further))
        is_known = said == row.digest and row.retry_at is not None and problem == row.problem
        row.retry_at, row.problem = now + (_LONGEST if is_known else _FIRST), problem
    else:
        row.retry_at, row.problem = None if again is None else now + again, ""
    row.digest = said
    row.save()
