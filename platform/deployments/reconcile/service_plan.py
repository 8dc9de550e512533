"""Plan of a service's change: made from the rows as they are, carried out at most once, by the change's own writes.

A plan takes no lock and writes nothing, so a dry run is a plan that is not carried out. Carrying it out takes the lock,
and does nothing where the service was changed since: then the plan is out of date.
"""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial

from django.db import IntegrityError, transaction

from deployments.models import InferenceService
from deployments.reconcile.service_change import (
    Change,
    Read,
    columns_of,
    columns_of_change,
    differing,
    load,
    number,
)


@contextmanager
def planning(service: InferenceService, *, now: datetime) -> Iterator[Change]:
    """Yield the service to the caller's block, and keep what the block changed for `carry_out`. Writes nothing.

    Args:
        service: one that is new is not saved yet.

    Raises:
        NotFound: the service does not exist any more.
    """
    is_new = service.pk is None
    change = Change(service, [], None, now) if is_new else load(service.pk, now=now)
    before = copy.copy(change.service)
    change.read = Read(None if is_new else before, change.newest, change.rollout)
    change.kept = []
    if is_new:
        change.write(partial(_insert, change.service, before))
    desired, columns = change.desired(), columns_of_change(change.service)
    yield change
    if number(change, desired, columns):
        change.write(partial(_update, change.service, columns_of(before)))
        change.write(change.write_events)


def carry_out(change: Change) -> bool:
    """Do the writes of a plan; False where its service was changed since, and then nothing is written."""
    service, was = change.service, None if change.read is None else change.read.service
    writes, change.kept = change.kept or [], None
    try:
        with transaction.atomic():
            if was is not None:
                rows = InferenceService.objects.select_for_update().filter(pk=was.pk)
                if list(rows.values_list("changes", flat=True)) != [was.changes]:
                    return False
            for write in writes:
                write()
    except IntegrityError:
        if was is None and InferenceService.objects.filter(namespace=service.namespace, name=service.name).exists():
            return False
        raise
    return True


def _insert(service: InferenceService, as_new: InferenceService) -> None:
    """Insert a new service as it was before the plan changed it."""
    as_new.save(force_insert=True)
    service.pk, service._state.adding = as_new.pk, False


def _update(service: InferenceService, before: dict[str, object]) -> None:
    """Write the columns that a plan changed; those of observations stay as they are."""
    if service.awaited_import is not None:
        service.awaited_import = service.awaited_import  # inserted by the plan, so its id is known only now
    if service.model_version is not None:
        service.model_version = service.model_version  # the same, of an image
    service.save(update_fields=[name for name in differing(service, before) if name != "id"])
