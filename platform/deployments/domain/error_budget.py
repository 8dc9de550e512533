"""Error budgets: how many requests of a period the objectives of a service allow to fail, and what is left. Pure.

An objective of 99.9 % allows 0.1 % of the requests to fail, or to be slow. The share of these that failed is the burn
rate of the period, which the chart's alerts compare over their windows: 1 uses the budget up exactly.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta

from deployments.domain.service_file.objectives import Objectives

WINDOW = timedelta(days=30)
"""The period of objectives."""
AVAILABILITY, LATENCY = "availability", "latency"
_DIGITS = 9  # percentages of a file are exact to five; what is beyond is the error of floats


@dataclass(frozen=True, slots=True)
class Counted:
    """Clients' requests of a part of the period.

    Attributes:
        requests, client_errors, server_errors: all, and those that failed by the callers' and by the service's fault.
        latency: answers by upper edge in microseconds; None above all edges.
    """

    requests: int = 0
    client_errors: int = 0
    server_errors: int = 0
    latency: Sequence[tuple[float | None, int]] = ()


@dataclass(frozen=True, slots=True)
class ErrorBudget:
    """An objective and the requests of a period.

    Attributes:
        target_percent: of the requests that must succeed, or of the answers that must be quick enough.
        within_ms: the longest time of a quick answer; None of availability.
        requests: that count.
        failures: of these, those that failed, or were slow.
    """

    objective: str
    target_percent: float
    within_ms: float | None
    requests: int
    failures: int

    @property
    def measured_percent(self) -> float | None:
        """Return the share that succeeded, rounded down to four digits, so that 100 means all; None without any."""
        if not self.requests:
            return None
        return 1_000_000 * (self.requests - self.failures) // self.requests / 10_000

    @property
    def burn_rate(self) -> float | None:
        """Return how many times as many requests failed as the objective allows; None without any request."""
        if not self.requests:
            return None
        return round(self.failures / self.requests / (round(100 - self.target_percent, _DIGITS) / 100), _DIGITS)

    @property
    def left_percent(self) -> float | None:
        """Return what is left of the budget; 0 where more failed than it allows, None without requests."""
        return None if self.burn_rate is None else max(0.0, round(100 * (1 - self.burn_rate), _DIGITS))

    @property
    def is_overspent(self) -> bool:
        """Return whether more requests failed than the objective allows."""
        return self.burn_rate is not None and self.burn_rate > 1


def error_budgets(objectives: Objectives, counted: Iterable[Counted]) -> tuple[ErrorBudget, ...]:
    """Return the budget of each objective over the requests of a period."""
    return tuple(_budgets(objectives, list(counted)))


def _budgets(objectives: Objectives, counted: Sequence[Counted]) -> Iterator[ErrorBudget]:
    if objectives.availability is not None:
        requests = sum(max(0, each.requests - each.client_errors) for each in counted)
        failures = min(requests, sum(each.server_errors for each in counted))
        yield ErrorBudget(AVAILABILITY, objectives.availability, None, requests, failures)
    if objectives.latency is not None:
        longest_us = round(1000 * objectives.latency.within_ms)
        answers = [bucket for each in counted for bucket in each.latency]
        slow = sum(count for edge, count in answers if edge is None or edge > longest_us)
        target = objectives.latency
        yield ErrorBudget(LATENCY, target.percent, target.within_ms, sum(count for _, count in answers), slow)
