"""How many replicas there should be, from what each has to do."""

import math
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain.autoscaling.rate_limits import PERIOD_S
from deployments.domain.autoscaling.replica_count import (
    TOLERANCE,
    Bounds,
    Decision,
    Memory,
    Reading,
    decide,
    memory_json,
    stored_memory,
)
from deployments.domain.service_file.scaling import ScaleMetric

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOW = timedelta(minutes=5)
WIDE = Bounds(1, 100)


def _in_flight(value: float | None, measured: int, target: float = 10) -> Reading:
    return Reading(ScaleMetric.CONCURRENCY, target, value, measured if value is not None else 0)


def _queue(value: float | None, measured: int, target: float = 50) -> Reading:
    return Reading(ScaleMetric.QUEUE_TIME, target, value, measured if value is not None else 0)


def _long_ago(replicas: int, *readings: Reading, bounds: Bounds = WIDE) -> Decision:
    """Decide with a memory that knows of nothing else than what is right now."""
    first = decide(replicas, readings, bounds, Memory(), window=WINDOW, now=NOW)
    return decide(replicas, readings, bounds, first.memory, window=WINDOW, now=NOW + 2 * WINDOW)


@pytest.mark.parametrize(
    ("replicas", "readings", "expected"),
    [
        pytest.param(1, [_in_flight(42, 1)], 5, id="up by the ratio, rounded up"),
        pytest.param(4, [_in_flight(3, 4)], 2, id="down by the ratio, rounded up"),
        pytest.param(3, [_in_flight(10.9, 3)], 3, id="within the tolerance above"),
        pytest.param(10, [_in_flight(9.1, 10)], 10, id="within the tolerance below"),
        pytest.param(3, [_in_flight(0, 3)], 1, id="nothing to do: the least"),
        pytest.param(3, [], 3, id="no metric: it stays"),
        pytest.param(3, [_in_flight(None, 0)], 3, id="nothing measured: it stays"),
        pytest.param(2, [_in_flight(30, 1)], 3, id="an unmeasured replica counts as idle before scaling up"),
        pytest.param(4, [_in_flight(15, 1)], 4, id="it would be too many already: it stays"),
        pytest.param(4, [_in_flight(2, 2)], 3, id="an unmeasured replica counts as busy before scaling down"),
        pytest.param(2, [_in_flight(20, 2), _queue(20, 2)], 4, id="of two metrics the one that asks for more"),
        pytest.param(4, [_in_flight(1, 4), _queue(150, 4)], 8, id="be it the other one, at most four more"),
        pytest.param(4, [_in_flight(1, 4), _queue(None, 0)], 4, id="not down while a metric is missing"),
        pytest.param(1, [_in_flight(30, 1), _queue(None, 0)], 3, id="up although a metric is missing"),
        pytest.param(3, [_in_flight(11.1, 3, target=10)], 4, id="just beyond the tolerance"),
    ],
)
def test_the_number_follows_the_ratio_of_value_and_target(
    replicas: int, readings: list[Reading], expected: int
) -> None:
    assert _long_ago(replicas, *readings).replicas == expected


def test_it_says_what_asked_for_the_number() -> None:
    assert _long_ago(2, _in_flight(42, 2), _queue(1, 2)).why == "42 requests in flight per replica, target 10"
    assert _long_ago(2, _in_flight(1, 2), _queue(112.4, 2)).why == "112 ms in the queue, target 50"
    capped = _long_ago(2, _in_flight(42, 2), bounds=Bounds(1, 3))
    assert (capped.replicas, capped.why) == (3, "42 requests in flight per replica, target 10, but maxReplicas is 3")
    held = _long_ago(2, _in_flight(0, 2), bounds=Bounds(2, 3, "50 % of what a has"))
    assert held.replicas == 2


@pytest.mark.parametrize(("least", "expected"), [(3, 3), (1, 2)])
def test_the_bounds_hold_whatever_is_measured(least: int, expected: int) -> None:
    assert _long_ago(2, bounds=Bounds(least, 5)).replicas == expected


def test_fewer_only_after_the_whole_window() -> None:
    memory = decide(4, [_in_flight(10, 4)], WIDE, Memory(), window=WINDOW, now=NOW).memory
    for seconds in range(2, 302, 2):
        decision = decide(4, [_in_flight(1, 4)], WIDE, memory, window=WINDOW, now=NOW + timedelta(seconds=seconds))
        assert decision.replicas == (4 if seconds <= WINDOW.total_seconds() else 1)
        memory = decision.memory
    assert decide(4, [_in_flight(1, 4)], WIDE, memory, window=WINDOW, now=NOW + timedelta(seconds=302)).replicas == 1


def test_a_peak_within_the_window_counts_for_all_of_it() -> None:
    memory = decide(4, [_in_flight(10, 4)], WIDE, Memory(), window=WINDOW, now=NOW).memory
    peak = NOW + timedelta(minutes=4)
    memory = decide(4, [_in_flight(7, 4)], WIDE, memory, window=WINDOW, now=peak).memory
    after = decide(4, [_in_flight(1, 4)], WIDE, memory, window=WINDOW, now=NOW + timedelta(minutes=6))
    assert after.replicas == 3


def test_more_at_most_doubles_or_adds_four_within_15_seconds() -> None:
    busy, memory, replicas = 1000.0, Memory(), 1
    seen = []
    for seconds in range(0, 32, 2):
        now = NOW + timedelta(seconds=seconds)
        decision = decide(replicas, [_in_flight(busy, replicas)], WIDE, memory, window=WINDOW, now=now)
        replicas, memory = decision.replicas, decision.memory
        seen.append(replicas)
    assert seen == [5] * 8 + [10] * 8


@given(
    replicas=st.integers(1, 100),
    value=st.one_of(st.none(), st.floats(0, 1000)),
    missing=st.integers(0, 5),
    least=st.integers(1, 50),
    more=st.integers(0, 50),
)
def test_it_stays_within_its_bounds_and_never_goes_against_the_evidence(
    replicas: int, value: float | None, missing: int, least: int, more: int
) -> None:
    bounds = Bounds(least, least + more)
    replicas = min(bounds.most, max(bounds.least, replicas))
    measured = max(1, replicas - missing)
    decision = _long_ago(replicas, _in_flight(value, measured), bounds=bounds)
    assert bounds.least <= decision.replicas <= bounds.most
    if value is None or abs(value / 10 - 1) <= TOLERANCE:
        assert decision.replicas == replicas
    elif value > 10:
        assert replicas <= decision.replicas <= max(replicas, math.ceil(value * measured / 10))
    else:
        assert replicas >= decision.replicas >= min(replicas, math.ceil(round(value * measured / 10, 9)))


def test_what_is_remembered_survives_being_stored_and_stays_small() -> None:
    memory = Memory()
    for seconds in range(0, 600, 2):
        now = NOW + timedelta(seconds=seconds)
        memory = decide(4, [_in_flight(seconds % 30, 4)], WIDE, memory, window=WINDOW, now=now).memory
    assert stored_memory(memory_json(memory)) == memory
    assert stored_memory({}) == Memory()
    assert len(memory.right) < 20
    assert all(NOW + timedelta(seconds=598) - at < timedelta(seconds=PERIOD_S) for at, _ in memory.added)
