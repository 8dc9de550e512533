"""When the load of a service in a pool earns it replicas of its own."""

from datetime import UTC, datetime, timedelta

import pytest

from deployments.domain.autoscaling.earned_replicas import (
    SHORTEST_SUSTAINED,
    SUSTAINED,
    busy_since,
    demand,
    earned,
    sustained_of,
)
from deployments.domain.autoscaling.replica_count import Reading
from deployments.domain.service_file.scaling import ScaleMetric, Scaling
from integrations.clusters.base import Behavior, ScalingRules

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SCALING = Scaling(0, 3)


@pytest.mark.parametrize(
    ("readings", "filled"),
    [
        pytest.param([], 0, id="no metric"),
        pytest.param([Reading(ScaleMetric.CONCURRENCY, 10, None, 0)], 0, id="unknown counters"),
        pytest.param([Reading(ScaleMetric.CONCURRENCY, 10, 5, 4)], 2, id="a sum over four replicas of the pool"),
        pytest.param([Reading(ScaleMetric.RPS, 50, 100, 1)], 2, id="a rate"),
        pytest.param([Reading(ScaleMetric.QUEUE_TIME, 50, 100, 4)], 2, id="a wait, which is no sum"),
        pytest.param(
            [Reading(ScaleMetric.CONCURRENCY, 10, 1, 1), Reading(ScaleMetric.QUEUE_TIME, 50, 75, 1)], 1.5, id="the most"
        ),
    ],
)
def test_demand_is_the_load_over_its_target(readings: list[Reading], filled: float) -> None:
    assert demand(readings) == filled


def test_only_load_that_lasts_earns_replicas() -> None:
    since, found = None, []
    for seconds in range(0, 50, 10):
        now = NOW + timedelta(seconds=seconds)
        since = busy_since(since, 1.5, now)
        found.append(earned(since, 1.5, SCALING, now))
    assert found == [0, 0, 0, 2, 2]
    assert busy_since(since, 0.9, NOW) is None
    assert earned(None, 5.0, SCALING, NOW + SUSTAINED) == 0


def test_it_earns_no_more_than_its_file_allows() -> None:
    assert earned(NOW.timestamp(), 40.0, SCALING, NOW + SUSTAINED) == 3


def test_the_window_of_scaling_up_is_how_long_load_lasts() -> None:
    assert sustained_of(Behavior()) == SUSTAINED
    assert sustained_of(Behavior(up=ScalingRules(window_s=120))) == timedelta(minutes=2)
    assert sustained_of(Behavior(up=ScalingRules(window_s=0))) == SHORTEST_SUSTAINED
