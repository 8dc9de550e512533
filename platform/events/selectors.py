"""Event queries."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet, Window
from django.db.models.functions import RowNumber

from events.models import Event


@dataclass(frozen=True, slots=True)
class EventView:
    """An event; `seq` counts up by one within the service, `request_id` is that of the request that caused it."""

    seq: int
    at: datetime
    kind: str
    message: str
    revision: str | None
    rollout: int | None
    request_id: str | None


def service_event_query(*, service_id: int) -> QuerySet[Event]:
    """Return the events of a service."""
    return Event.objects.filter(service=service_id)


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


def cluster_event_query(*, cluster_id: int) -> QuerySet[Event]:
    """Return the events of a cluster itself, such as a restart of its gateway."""
    return Event.objects.filter(cluster=cluster_id)


def cluster_events_newest(*, cluster_ids: Collection[int], limit: int) -> dict[int, tuple[EventView, ...]]:
    """Return the newest events of each cluster itself, newest first."""
    numbered = Window(RowNumber(), partition_by="cluster", order_by="-seq")
    events = Event.objects.filter(cluster__in=cluster_ids).annotate(rank=numbered)
    found: dict[int, list[EventView]] = {cluster_id: [] for cluster_id in cluster_ids}
    for event in events.filter(rank__lte=limit).order_by("-seq"):
        found[event.cluster_id or 0].append(event_view(event))
    return {cluster_id: tuple(events) for cluster_id, events in found.items()}


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
