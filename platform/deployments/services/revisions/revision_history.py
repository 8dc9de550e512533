"""Revision history limit: deletes ended revisions beyond it, with the rollouts to and from them.

Ended revisions have failed or were retired, and no longer run. The newest `spec.revisionHistoryLimit` of them stay, and
also the target of `rollouts undo` and those of the newest rollout. Without the field the limit is that of Kubernetes,
and all revisions of an earlier release stay, which had no limit. A model version that only ended revisions name can be
deleted, and they are deleted with it.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db.models import Q

from common.errors import FairleadError, NotFound
from deployments.domain.service_state.desired import Role
from deployments.models import InferenceService, Revision
from deployments.reconcile.service_change import Change, changing
from deployments.selectors import stable_before
from deployments.services.services import spec_of
from events.domain.kinds import Kind

ENDED = Q(role__in=[Role.RETIRED, Role.FAILED], stopped_at__isnull=False)
_OF_THIS_RELEASE = Q(egress__isnull=False)  # an earlier one did not know it
_KEPT = 10


def surplus(ended: Sequence[int], *, limit: int, needed: Iterable[int]) -> list[int]:
    """Return which of the ended revisions, newest first, are beyond the limit and not needed."""
    kept = set(needed) | set(ended[:limit])
    return [each for each in ended if each not in kept]


def revisions_forget(*, now: datetime) -> int:
    """Delete the ended revisions of each service beyond its limit, and return how many."""
    forgotten = 0
    having = Revision.objects.filter(ENDED).values("service")
    for service in InferenceService.objects.filter(pk__in=having, deleting_at=None).order_by("pk"):
        try:
            limit = spec_of(service).revision_history_limit
        except FairleadError:  # a file of another release; its meaning is unknown here
            continue
        counted = ENDED if limit is not None else ENDED & _OF_THIS_RELEASE
        most = _KEPT if limit is None else limit
        if Revision.objects.filter(counted, service=service).count() > most:
            forgotten += _forget_surplus(service.pk, counted, most, now)
    return forgotten


def versions_forget(version_ids: Iterable[int], now: datetime) -> None:
    """Delete the ended revisions that ran one of the model versions, which are about to be deleted."""
    ids = list(version_ids)
    services = Revision.objects.filter(ENDED, model_version__in=ids).values_list("service", flat=True)
    for service_id in sorted(set(services)):
        with changing(service_id, now=now) as change:
            rows = Revision.objects.filter(ENDED, service=service_id, model_version__in=ids)
            _forget(change, list(rows.order_by("number")), "its model version was deleted")


def _forget_surplus(service_id: int, counted: Q, limit: int, now: datetime) -> int:
    try:
        with changing(service_id, now=now) as change:
            needed = {row.pk for row in change.revisions}
            if change.newest is not None:
                needed |= {change.newest.from_revision_id, change.newest.to_revision_id}
            stable = change.revision(Role.STABLE)
            back = None if stable is None or not limit else stable_before(stable=stable)
            if back is not None:
                needed.add(back.pk)
            ended = Revision.objects.filter(counted, service=service_id).order_by("-number")
            doomed = surplus(list(ended.values_list("pk", flat=True)), limit=limit, needed=needed)
            rows = list(Revision.objects.filter(pk__in=doomed).order_by("number"))
            _forget(change, rows, f"revisionHistoryLimit is {limit}")
            return len(rows)
    except NotFound:  # deleted meanwhile
        return 0


def _forget(change: Change, rows: Sequence[Revision], why: str) -> None:
    if not rows:
        return
    names = ", ".join(row.name for row in rows)
    change.event(Kind.REVISION_FORGOTTEN, f"{names} and the rollouts to and from them are forgotten: {why}")
    Revision.objects.filter(pk__in=[row.pk for row in rows]).delete()
