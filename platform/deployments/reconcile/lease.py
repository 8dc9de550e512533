"""Lets one reconciler at a time turn to a service: a lease in the service's row, taken by one conditional UPDATE.

    free --take--> held --give back--> free
                    '-- it ran out, or who held it is gone --take--> held by another

The owner's text names the process that holds the lease. That a worker was killed is seen by those that share its
machine, such as the one started in its place, which need not wait for it; elsewhere its lease has to run out.
"""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db.models import BigIntegerField, Case, F, Q, Value, When

from common import process_identity
from deployments.domain.service_state.quiescence import UNSETTLED
from deployments.models import InferenceService

LEASE = timedelta(seconds=30)
"""Longer than a tick with every timeout in it."""


def owner_is_gone(owner: str, *, place: str, started: Callable[[int], int | None]) -> bool:
    """Return whether it is certain that who holds a lease runs no more. Pure.

    Args:
        owner: as it was written into the row.
        place: where it is asked (`common.process_identity`).
        started: returns when a process of this place was started, None where there is none.
    """
    name = process_identity.parse(owner.rpartition(".")[0])
    if name is None or not name.place or name.place != place:
        return False
    return started(name.pid) != name.start_ticks


def take(service_id: int, now: datetime) -> str:
    """Return the owner as which the service is held from now on; empty where another holds it."""
    me = process_identity.myself()
    owner = f"{me}.{uuid.uuid4().hex[:12]}"
    service = InferenceService.objects.filter(pk=service_id)
    held = {"lease_owner": owner, "lease_expires_at": now + LEASE, "settled": UNSETTLED}
    if service.filter(Q(lease_expires_at=None) | Q(lease_expires_at__lte=now)).update(**held):
        return owner
    holder = service.values_list("lease_owner", flat=True).first()
    if holder and owner_is_gone(holder, place=me.place, started=process_identity.start_ticks):
        return owner if service.filter(lease_owner=holder).update(**held) else ""
    return ""


def holds(service_id: int, owner: str, now: datetime) -> bool:
    """Return whether the owner still holds the service."""
    return InferenceService.objects.filter(pk=service_id, lease_owner=owner, lease_expires_at__gt=now).exists()


def give_back(service_id: int, owner: str, now: datetime, *, settled: int = UNSETTLED) -> None:
    """Let the next one in, and note when the service was last turned to, and whether anything of it goes on.

    Args:
        settled: for the column of that name; what touched the service since it was taken stands against it.
    """
    untouched = Case(When(settled=UNSETTLED, then=Value(settled, BigIntegerField())), default=F("settled"))
    InferenceService.objects.filter(pk=service_id, lease_owner=owner).update(
        lease_owner="", lease_expires_at=None, ticked_at=now, settled=untouched
    )
