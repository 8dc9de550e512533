"""Lease: lets one reconciler at a time have a service; kept in its row, taken by one conditional UPDATE.

    free --take--> held, and renewed --give back--> free
                    '-- it ran out, or who held it is gone --take--> held by another

The owner's text names the process that holds the lease. Processes on the same machine detect that a worker was killed,
such as the one started in its place, and need not wait; elsewhere its lease has to expire.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.db.models import BigIntegerField, Case, F, Q, Value, When

from common import process_identity
from common.randomness import new_id
from deployments.domain.service_state.quiescence import UNSETTLED
from deployments.models import InferenceService
from deployments.reconcile.renewal import HELD


def owner_is_gone(owner: str, *, place: str, started: Callable[[int], int | None]) -> bool:
    """Return whether the owner of a lease has certainly ended. Pure.

    Args:
        owner: as written in the row.
        place: the place of the caller (`common.process_identity`).
        started: returns when a process of this place was started, None if it does not exist.
    """
    name = process_identity.parse(owner.rpartition(".")[0])
    if name is None or not name.place or name.place != place:
        return False
    return started(name.pid) != name.start_ticks


def take(service_id: int, now: datetime) -> str:
    """Take the lease and return its owner; empty where another holds it."""
    me = process_identity.myself()
    owner = f"{me}.{new_id().hex[:12]}"
    service = InferenceService.objects.filter(pk=service_id)
    held = {"lease_owner": owner, "lease_expires_at": now + HELD, "settled": UNSETTLED}
    if service.filter(Q(lease_expires_at=None) | Q(lease_expires_at__lte=now)).update(**held):
        return owner
    holder = service.values_list("lease_owner", flat=True).first()
    if holder and owner_is_gone(holder, place=me.place, started=process_identity.start_ticks):
        return owner if service.filter(lease_owner=holder).update(**held) else ""
    return ""


def renew(service_id: int, owner: str, now: datetime) -> bool:
    """Renew the lease; returns False where it was given back, or another has it."""
    mine = InferenceService.objects.filter(pk=service_id, lease_owner=owner)
    return bool(mine.update(lease_expires_at=now + HELD))


def holds(service_id: int, owner: str, now: datetime) -> bool:
    """Return whether the owner still holds the lease."""
    return InferenceService.objects.filter(pk=service_id, lease_owner=owner, lease_expires_at__gt=now).exists()


def give_back(service_id: int, owner: str, now: datetime, *, settled: int = UNSETTLED) -> bool:
    """Release the lease, and record the time of the tick, and whether the service is settled; False where it was lost.

    Args:
        settled: for the column of that name; a touch since the lease was taken has precedence.
    """
    free: dict[str, Any] = {"lease_owner": "", "lease_expires_at": None, "ticked_at": now}
    if settled != UNSETTLED:  # `take` has written that already
        free["settled"] = Case(When(settled=UNSETTLED, then=Value(settled, BigIntegerField())), default=F("settled"))
    return bool(InferenceService.objects.filter(pk=service_id, lease_owner=owner).update(**free))
