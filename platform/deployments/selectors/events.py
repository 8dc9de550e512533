"""Event queries, and change marks for pollers."""

import zlib
from collections.abc import Collection, Sequence

from django.db.models import QuerySet, Window
from django.db.models.functions import RowNumber

from clusters.models import Cluster
from common.errors import NotFound
from deployments.domain.phases import ServicePhase
from deployments.models import InferenceService
from deployments.views.shapes import EventView
from events.models import Event
from events.services.live_feed import Marks

_NEWEST = 200


def event_query(*, service: InferenceService) -> QuerySet[Event]:
    """Return the events of a service."""
    return Event.objects.filter(service=service)


def events_after(*, service_id: int, seq: int, limit: int = 100) -> list[EventView]:
    """Return the events of a service with a larger number than `seq`, oldest first."""
    return [
        event_view(event) for event in Event.objects.filter(service=service_id, seq__gt=seq).order_by("seq")[:limit]
    ]


def events_newest(*, service_id: int, rollout_id: int | None = None, limit: int = 50) -> list[EventView]:
    """Return the newest events of a service, or of one of its rollouts, newest first."""
    events = Event.objects.filter(service=service_id)
    if rollout_id is not None:
        events = events.filter(rollout=rollout_id)
    return [event_view(event) for event in events.order_by("-seq")[:limit]]


def cluster_event_query(*, name: str) -> QuerySet[Event]:
    """Return the events of a cluster itself, such as a restart of its gateway; raises NotFound."""
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        raise NotFound(f"there is no cluster {name!r}")
    return Event.objects.filter(cluster=cluster)


def cluster_events_newest(*, clusters: Sequence[Cluster], limit: int) -> dict[int, tuple[EventView, ...]]:
    """Return the newest events of each cluster itself, newest first."""
    numbered = Window(RowNumber(), partition_by="cluster", order_by="-seq")
    rows = Event.objects.filter(cluster__in=clusters).annotate(rank=numbered).filter(rank__lte=limit).order_by("-seq")
    found: dict[int, list[EventView]] = {cluster.pk: [] for cluster in clusters}
    for event in rows:
        found[event.cluster_id or 0].append(event_view(event))
    return {pk: tuple(events) for pk, events in found.items()}


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


def event_view(event: Event) -> EventView:
    """Return an event as shown."""
    return EventView(
        seq=event.seq,
        at=event.at,
        kind=event.kind,
        message=event.message,
        revision=event.revision or None,
        rollout=event.rollout_id,
        request_id=event.request_id or None,
    )
