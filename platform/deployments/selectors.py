"""What is known about services, revisions, rollouts and events. Reads only; the same values serve the API and the pages.

The number of queries does not depend on how many services, revisions or rollouts there are.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from deployments.analysis.verdict import Measurement


@dataclass(frozen=True, slots=True)
class ReasonView:
    """Why a rollout is where it is."""

    code: str
    message: str


@dataclass(frozen=True, slots=True)
class StepView:
    """One step of the rollout's policy; `analysis` is the policy file's part, None without a gate."""

    weight: int
    hold_seconds: float
    pause: bool
    analysis: dict[str, object] | None


@dataclass(frozen=True, slots=True)
class RequestsView:
    """Requests the gateway sent to each side."""

    canary: int
    stable: int


@dataclass(frozen=True, slots=True)
class AnalysisRunView:
    """What was counted and judged at one step; `seen_percent` is the canary's share of requests, None without any."""

    step_index: int
    attempt: int
    weight_percent: int
    verdict: str
    message: str
    started_at: datetime
    finished_at: datetime | None
    requests: RequestsView
    seen_percent: float | None
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True, slots=True)
class RolloutView:
    """A rollout as the API shows it; `steps` and `analysis_runs` are complete."""

    id: int
    service: str
    from_revision: str
    to_revision: str
    from_version: int
    to_version: int
    policy: str | None
    strategy: str
    phase: str
    attempt: int
    step_index: int
    steps: tuple[StepView, ...]
    weight_wanted: int
    weight_actual: int
    weight_seen_percent: float | None
    seen_requests: int
    reason: ReasonView
    verdict: str
    analysis_runs: tuple[AnalysisRunView, ...]
    started_at: datetime
    finished_at: datetime | None
    created_by: str


@dataclass(frozen=True, slots=True)
class RevisionView:
    """A revision and how it is now; `role` is stable, canary, retiring, retired or failed."""

    name: str
    number: int
    model: str
    model_version: int
    role: str
    replicas_wanted: int
    replicas_ready: int
    restarts: int
    weight_wanted: int
    weight_actual: int
    message: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A service with its running revisions and its newest rollout."""

    id: int
    namespace: str
    name: str
    url: str
    phase: str
    reason: str
    model: str
    model_version: int
    policy: str | None
    stable_revision: str | None
    revisions: tuple[RevisionView, ...]
    rollout: RolloutView | None
    event_seq: int
    changes: int
    created_at: datetime


@dataclass(frozen=True, slots=True)
class EventView:
    """What happened; `seq` counts up by one within the service."""

    seq: int
    at: datetime
    kind: str
    message: str
    revision: str | None
    rollout: int | None


def service_list(*, limit: int | None = None) -> list[ServiceView]:
    """Return all services by namespace and name; their rollouts without analysis runs but the newest."""
    raise NotImplementedError


def service_detail(*, namespace: str, name: str) -> ServiceView:
    """Return one service; raises NotFound."""
    raise NotImplementedError


def rollout_detail(*, rollout_id: int) -> RolloutView:
    """Return one rollout with all its analysis runs; raises NotFound."""
    raise NotImplementedError


def rollout_list(*, namespace: str, name: str, limit: int = 50) -> list[RolloutView]:
    """Return the newest rollouts of a service, newest first; raises NotFound."""
    raise NotImplementedError


def events_after(*, service_id: int, seq: int, limit: int = 100) -> list[EventView]:
    """Return the events of a service with a larger number than `seq`, oldest first."""
    raise NotImplementedError


def events_newest(*, service_id: int, limit: int = 50) -> list[EventView]:
    """Return the newest events of a service, newest first."""
    raise NotImplementedError


def cluster_events(*, limit: int = 50) -> list[EventView]:
    """Return the newest events of the clusters themselves, newest first."""
    raise NotImplementedError


def change_marks() -> dict[int, tuple[int, int]]:
    """Return service id -> (changes, newest event number), by which a poller sees what to show anew."""
    raise NotImplementedError


def by_namespace(services: Iterable[ServiceView]) -> dict[str, list[ServiceView]]:
    """Return the services under their namespaces, both in the order given."""
    grouped: dict[str, list[ServiceView]] = {}
    for service in services:
        grouped.setdefault(service.namespace, []).append(service)
    return grouped
