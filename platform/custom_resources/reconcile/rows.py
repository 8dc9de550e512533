"""Rows of objects that are followed: what became of applying one, and when one that was refused is tried again."""

from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction

from clusters.models import Cluster
from common.errors import FairleadError, Unavailable
from custom_resources.models import ResourceObject

KEPT_EVENTS = 20
"""Most events of a service that are reported at once; a cluster keeps Events for an hour."""
Apply = Callable[[], timedelta | None]
"""Changes the database, and returns after how long to look again; None where nothing is left to do."""
_FIRST, _LONGEST = timedelta(seconds=15), timedelta(minutes=5)


def following(cluster: Cluster, kind: str, namespace: str, name: str) -> ResourceObject | None:
    """Return the row of an object; None before it is followed."""
    rows = ResourceObject.objects.select_related("service", "model_import", "model_version__model")
    return rows.filter(cluster=cluster, kind=kind, namespace=namespace, name=name).first()


def is_due(row: ResourceObject, said: str, now: datetime) -> bool:
    """Return whether an object says something else than what was applied last, or is to be tried again."""
    return said != row.digest or (row.retry_at is not None and row.retry_at <= now)


def attempt(row: ResourceObject, said: str, plan: Callable[[], Apply], *, now: datetime) -> None:
    """Apply what an object says, and save what became of it.

    Both are one transaction: a process that dies between them would leave a change whose object does not know of it,
    and the next one would import, take over or refuse what is the object's already.

    Args:
        said: the digest of what the object says.
        plan: checks it, with clusters where it has to, and returns what changes the database.

    Raises:
        Unavailable: as `plan` does; then nothing is saved, and the object is looked at again.
    """
    try:
        apply = plan()
        with transaction.atomic():
            again = apply()
            row.digest, row.retry_at, row.problem = said, None if again is None else now + again, ""
            row.save()
    except Unavailable:
        raise
    except FairleadError as error:
        problem = " ".join((error.message, *error.further))
        is_known = said == row.digest and row.retry_at is not None and problem == row.problem
        row.digest, row.retry_at, row.problem = said, now + (_LONGEST if is_known else _FIRST), problem
        row.save()
