"""Error budgets of a service, from its traffic history."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from deployments.domain.error_budget import WINDOW, ErrorBudget, error_budgets
from deployments.domain.service_file import stored_objectives
from deployments.models import InferenceService, TrafficPoint


@dataclass(frozen=True, slots=True)
class ErrorBudgets:
    """Objectives of a service, measured over the part of their window of which traffic history is kept.

    Attributes:
        window: of the objectives.
        kept: for how long history is kept.
        since: begin of the oldest history; None without any.
        budgets: one of each objective; empty without any.
    """

    window: timedelta
    kept: timedelta
    since: datetime | None
    budgets: tuple[ErrorBudget, ...]


def service_error_budgets(*, service: InferenceService, now: datetime, kept: timedelta) -> ErrorBudgets:
    """Return the error budgets of a service; one query where it has objectives, else none.

    Args:
        kept: for how long traffic history is kept.
    """
    objectives = stored_objectives(service.document.get("spec", {}).get("objectives"))
    if objectives is None:
        return ErrorBudgets(WINDOW, kept, None, ())
    of_clients = TrafficPoint.objects.filter(service=service, at__gt=now - min(kept, WINDOW), has_weight=True)
    points = list(of_clients.order_by("at").defer("replicas"))
    since = points[0].at - timedelta(seconds=points[0].seconds) if points else None
    return ErrorBudgets(WINDOW, kept, since, error_budgets(objectives, points))
