"""Installation metrics of services and rollouts, for the metrics page."""

from datetime import datetime, timedelta

from django.db.models import Count, F, Max, Min
from django.db.models.functions import Coalesce

from deployments.domain.phases import Phase, ServicePhase
from deployments.domain.service_state.quiescence import RESYNC_EVERY
from deployments.models import InferenceService, Rollout


def service_phases() -> dict[str, int]:
    """Return how many services are in each phase, phases without any included."""
    counted = dict(InferenceService.objects.values_list("phase").annotate(Count("pk")).order_by())
    return {str(phase): counted.get(str(phase), 0) for phase in ServicePhase}


def rollout_phases() -> dict[str, int]:
    """Return how many rollouts are in each phase, phases without any included."""
    counted = dict(Rollout.objects.values_list("phase").annotate(Count("pk")).order_by())
    return {str(phase): counted.get(str(phase), 0) for phase in Phase}


def sweep_lag(*, now: datetime) -> timedelta:
    """Return how long the service that waits longest has had no tick; zero without services.

    Settled services have a tick every minute, or later with many of them, some at each sweep: their wait counts from a
    minute after the last tick.
    """
    moving = InferenceService.objects.exclude(settled=F("changes"))
    oldest = moving.aggregate(at=Min(Coalesce("ticked_at", "created_at")))["at"]
    settled = InferenceService.objects.filter(settled=F("changes")).aggregate(at=Max("ticked_at"))["at"]
    waits: list[timedelta] = [] if oldest is None else [now - oldest]
    if settled is not None:
        waits.append(now - settled - RESYNC_EVERY)
    return max([timedelta(0), *waits])
