"""Queries of a service's recordings."""

import zlib
from collections.abc import Collection

from django.db.models import QuerySet

from common.errors import NotFound
from deployments.models import InferenceService
from events.services.live_feed import Marks
from recordings.models import Recording


def recording_query(*, service: InferenceService) -> QuerySet[Recording]:
    """Return the service's recordings."""
    return Recording.objects.select_related("service").filter(service=service)


def recording_get(*, namespace: str, name: str, recording_id: int) -> Recording:
    """Return a recording of the service; raises NotFound."""
    found = Recording.objects.select_related("service").filter(
        service__namespace=namespace, service__name=name, pk=recording_id
    )
    recording = found.first()
    if recording is None:
        raise NotFound(
            f"service {namespace}/{name} has no recording {recording_id}; it may have been deleted when it expired"
        )
    return recording


def recordings_newest(*, service_id: int, limit: int) -> list[Recording]:
    """Return the newest recordings of a service."""
    return list(Recording.objects.filter(service=service_id).order_by("-pk")[:limit])


def recording_running(*, service_id: int) -> Recording | None:
    """Return the running recording of a service, or None."""
    return Recording.objects.filter(service=service_id, ended_at=None).first()


def recording_marks(recordings: Collection[int]) -> Marks:
    """Return change markers of these recordings; none for all together."""
    columns = Recording.objects.filter(pk__in=recordings).values_list("pk", "requests", "bytes", "ended_at")
    return Marks(0, {pk: (requests, zlib.crc32(repr(said).encode())) for pk, requests, *said in columns})
