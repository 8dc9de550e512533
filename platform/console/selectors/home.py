"""Dashboard queries for Home: counts of services, rollouts in progress, failures, recent events."""

import zlib
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Exists, F, OuterRef, Q, QuerySet

from clusters.models import Cluster
from common.db.count import count_up_to
from deployments.domain.phases import ENDED_BADLY, Code, Phase, ServicePhase
from deployments.domain.waits import Condition
from deployments.models import InferenceService, Rollout
from deployments.selectors import change_marks
from deployments.selectors.rollouts.rollouts import rollout_query
from deployments.selectors.services import service_query
from events.domain.kinds import Kind
from events.models import Event
from events.selectors import EventView, event_view
from events.services.live_feed import Marks
from registry.selectors import newest_to_approve

IN_PROGRESS = (Phase.PENDING, Phase.PROGRESSING, Phase.PAUSED)
_BY_PEOPLE = (Code.ABORTED, Code.REJECTED, Code.SUPERSEDED)
_BROKEN_WAITS = (Condition.IMPORT_FAILED, Condition.ALIAS_REFUSED, Condition.CLUSTER_REFUSES)
_SMALL_STEPS = (Kind.ROLLOUT_WEIGHT_WANTED,)


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of services by kind, and of rollouts in progress, as `common.db.count` counts."""

    services: int
    live: int
    stopped: int
    rolling: int
    broken: int


@dataclass(frozen=True, slots=True)
class Happening:
    """An event with its service."""

    namespace: str
    name: str
    event: EventView


def home_marks(services: Collection[int] = ()) -> Marks:
    """Return the marks of `change_marks`, which also change with the other versions that wait for approval."""
    marks = change_marks(services)
    return Marks(zlib.crc32(repr((marks.everything, newest_to_approve())).encode()), marks.of)


def home_counts(*, only: Q) -> Counts:
    """Return the counts over the services that fit the condition, and their rollouts."""
    services = InferenceService.objects.filter(only)
    return Counts(
        services=count_up_to(services),
        live=count_up_to(services.filter(_IS_LIVE)),
        stopped=count_up_to(services.filter(phase=ServicePhase.STOPPED)),
        rolling=count_up_to(_in_progress(only)),
        broken=count_up_to(services.filter(_IS_BROKEN)),
    )


def rollouts_in_progress(*, only: Q, limit: int) -> list[Rollout]:
    """Return rollouts in progress with what `rollout_views` reads; those that wait for users first, then oldest first.

    Args:
        only: a condition on services.
    """
    for_people = Q(phase=Phase.PAUSED) | Q(reason_code=Code.AWAITING_APPROVAL)
    return list(
        _in_progress(only)
        .annotate(for_people=for_people)
        .order_by("-for_people", F("reason_since").asc(), "pk")[:limit]
    )


def _in_progress(only: Q) -> QuerySet[Rollout]:
    services = InferenceService.objects.filter(only).values("pk")
    return rollout_query().filter(phase__in=IN_PROGRESS, service__in=services)


def rollouts_ended_badly(*, only: Q, now: datetime, within: timedelta, limit: int) -> list[Rollout]:
    """Return recent rollouts that failed without a user's decision, and that no other one followed."""
    later = Rollout.objects.filter(service=OuterRef("service"), pk__gt=OuterRef("pk"))
    services = InferenceService.objects.filter(only).values("pk")
    rows = rollout_query().filter(finished_at__gte=now - within, phase__in=ENDED_BADLY, service__in=services)
    return list(rows.exclude(reason_code__in=_BY_PEOPLE).exclude(Exists(later)).order_by("-finished_at")[:limit])


def services_broken(*, only: Q, limit: int) -> list[InferenceService]:
    """Return services that are Degraded, or blocked until a user acts, newest first."""
    return list(service_query().filter(_IS_BROKEN, only).order_by(F("waits_since").desc(nulls_last=True), "pk")[:limit])


def services_live(*, only: Q, limit: int) -> list[InferenceService]:
    """Return healthy live services, most recently live first."""
    return list(service_query().filter(_IS_LIVE, only).order_by("-live_at", "pk")[:limit])


def clusters_broken() -> list[Cluster]:
    """Return the unreachable clusters."""
    return list(Cluster.objects.exclude(problem="").order_by("name"))


def happenings_newest(*, only: Q, limit: int) -> list[Happening]:
    """Return recent events of the services, newest first, without a rollout's smallest steps.

    Args:
        only: a condition on events.
    """
    events = Event.objects.filter(only, service__isnull=False).exclude(kind__in=_SMALL_STEPS)
    rows = events.select_related("service").only(*_OF_EVENT).order_by("-pk")[:limit]
    return [Happening(row.service.namespace, row.service.name, event_view(row)) for row in rows if row.service]


_IS_LIVE = Q(live_at__isnull=False) & Q(phase__in=[ServicePhase.READY, ServicePhase.PROGRESSING])
_IS_BROKEN = Q(phase=ServicePhase.DEGRADED) | Q(waits_for__in=_BROKEN_WAITS)
_OF_EVENT = (
    *("seq", "at", "kind", "message", "revision", "rollout", "request_id"),
    *("service__namespace", "service__name"),
)
