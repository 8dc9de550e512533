"""Error budgets of a service, from its traffic history."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from deployments.domain.error_budget import WINDOW, Counted, ErrorBudget, error_budgets
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
    counted = ["requests", "client_errors", "server_errors", *(["latency"] if objectives.latency else [])]
    points = list(of_clients.order_by("at").values_list("at", "seconds", *counted))
    since = points[0][0] - timedelta(seconds=points[0][1]) if points else None
    budgets = error_budgets(objectives, (Counted(*counts) for _, _, *counts in points))
    return ErrorBudgets(WINDOW, kept, since, budgets)
