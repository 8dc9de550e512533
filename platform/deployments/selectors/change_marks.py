"""Change marks of services for pollers."""

import zlib
from collections.abc import Collection

from deployments.domain.phases import ServicePhase
from deployments.models import InferenceService
from events.services.live_feed import Marks

_NEWEST = 200


def change_marks(services: Collection[int] = ()) -> Marks:
    """Return change marks for pollers: one of all services together, and those of the services with these ids.

    A change is recorded with the time at which its statement ran, and may become visible only after later ones: the
    mark of all covers as many of the newest as could not come in between. Services being deleted are in it until they
    are gone.
    """
    columns = ("pk", "changes", "event_seq")
    newest = InferenceService.objects.order_by("-changed_at", "-pk").values_list(*columns)[:_NEWEST]
    going = InferenceService.objects.filter(phase=ServicePhase.DELETING).order_by("pk").values_list("pk", flat=True)
    everything = zlib.crc32(repr((list(newest), list(going[:_NEWEST]))).encode())
    asked = InferenceService.objects.filter(pk__in=services).values_list(*columns) if services else ()
    return Marks(everything, {pk: (changes, event_seq) for pk, changes, event_seq in asked})
