"""Error budgets of made-up periods."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain.error_budget import AVAILABILITY, LATENCY, Counted, ErrorBudget, error_budgets
from deployments.domain.service_file import Objectives
from deployments.domain.service_file.objectives import LatencyObjective

BOTH = Objectives(99.9, LatencyObjective(99, 0.2))


def test_each_objective_has_its_budget_over_all_parts() -> None:
    parts = [
        Counted(requests=15_000, server_errors=9, latency=[(100.0, 14_000), (200.0, 900), (300.0, 10)]),
        Counted(requests=9_000, server_errors=3, latency=[(200.0, 9_000), (None, 90)]),
    ]
    availability, latency = error_budgets(BOTH, parts)
    assert availability == ErrorBudget(AVAILABILITY, 99.9, None, 24_000, 12)
    assert (availability.measured_percent, availability.burn_rate, availability.left_percent) == (99.95, 0.5, 50.0)
    assert latency == ErrorBudget(LATENCY, 99, 0.2, 24_000, 100)
    assert latency.left_percent == pytest.approx(58.3333, abs=0.001)
    assert not latency.is_overspent


def test_what_callers_caused_does_not_count() -> None:
    (found,) = error_budgets(Objectives(availability=99), [Counted(requests=1_000, client_errors=900, server_errors=1)])
    assert (found.requests, found.failures, found.left_percent) == (100, 1, 0.0)
    assert not found.is_overspent


def test_without_requests_nothing_is_known() -> None:
    for found in error_budgets(BOTH, [Counted()]):
        assert (found.measured_percent, found.burn_rate, found.left_percent) == (None, None, None)
        assert not found.is_overspent


def test_more_failures_than_allowed_leave_nothing() -> None:
    (found,) = error_budgets(Objectives(availability=99.9), [Counted(requests=1_000, server_errors=4)])
    assert (found.measured_percent, found.burn_rate, found.left_percent) == (99.6, 4.0, 0.0)
    assert found.is_overspent


def test_a_service_has_only_the_budgets_of_its_objectives() -> None:
    (found,) = error_budgets(
        Objectives(latency=LatencyObjective(95, 7.5)), [Counted(latency=[(7500.0, 1), (10000.0, 1)])]
    )
    assert (found.objective, found.within_ms, found.requests, found.failures) == (LATENCY, 7.5, 2, 1)


@given(
    target=st.sampled_from([95.0, 97.5, 99.0, 99.9, 99.95, 99.99, 99.999]),
    allowed=st.integers(1, 1_000),
    more=st.integers(-1, 1),
)
def test_the_budget_ends_with_exactly_the_failures_that_are_allowed(target: float, allowed: int, more: int) -> None:
    requests = round(allowed / (round(100 - target, 6) / 100))
    found = ErrorBudget(AVAILABILITY, target, None, requests, allowed + more)
    assert found.is_overspent == (more > 0)
    assert (found.left_percent == 0) == (more >= 0)


@given(requests=st.integers(1, 10**9), failures=st.integers(0, 10**6))
def test_all_is_measured_only_where_nothing_failed(requests: int, failures: int) -> None:
    found = ErrorBudget(AVAILABILITY, 99.0, None, requests, min(failures, requests))
    assert found.measured_percent is not None
    assert (found.measured_percent == 100) == (failures == 0)
