"""Installation metrics of services and rollouts, for the metrics page."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, F, Max, Min
from django.db.models.functions import Coalesce

from accounts.domain.roles import Owned
from accounts.selectors import owning_teams
from deployments.domain.phases import Phase, ServicePhase
from deployments.domain.service_file import Objectives, stored_objectives
from deployments.domain.service_state.quiescence import RESYNC_EVERY
from deployments.models import InferenceService, Rollout


@dataclass(frozen=True, slots=True)
class ServiceObjectives:
    """Objectives of a service; `team` owns its namespace."""

    namespace: str
    service: str
    team: str
    objectives: Objectives


def service_objectives() -> Iterator[ServiceObjectives]:
    """Yield the services with objectives; two queries, whatever their number."""
    rows = InferenceService.objects.filter(document__spec__has_key="objectives").order_by()
    found = list(rows.values_list("namespace", "name", "document__spec__objectives"))
    teams = owning_teams(kind=Owned.NAMESPACE, names=(namespace for namespace, *_ in found))
    for namespace, name, value in found:
        if (objectives := stored_objectives(value)) is not None:
            yield ServiceObjectives(namespace, name, teams[namespace], objectives)


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
