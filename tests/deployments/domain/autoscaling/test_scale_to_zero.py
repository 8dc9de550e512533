"""How many replicas requests in flight make, when the last one goes, and what wakes it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from deployments.domain.autoscaling.rate_limits import Memory
from deployments.domain.autoscaling.replica_count import Bounds, Reading, decide
from deployments.domain.autoscaling.scale_to_zero import (
    QUIET,
    SHORTEST_QUIET,
    Sleep,
    asleep,
    may_sleep,
    quiet_of,
    sleep_json,
    stored_sleep,
    watched,
    woken,
)
from deployments.domain.service_file.scaling import ScaleMetric
from integrations.clusters.base import Behavior, Sample, ScalingPolicy, ScalingRules, Unit

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
AT_ONCE = Behavior(ScalingRules(policies=(ScalingPolicy(Unit.PODS, 100, 15),)), ScalingRules(window_s=0))


@pytest.mark.parametrize(("target", "in_flight", "replicas"), [(1, 10, 10), (5, 50, 10), (1, 0, 0)])
def test_requests_in_flight_over_their_target_are_the_replicas(target: float, in_flight: int, replicas: int) -> None:
    reading = Reading(ScaleMetric.CONCURRENCY, target, in_flight, 1)
    memory = Memory()
    for now in (NOW, NOW + timedelta(seconds=1)):
        found = decide(1, [reading], Bounds(0, 100), memory, window=timedelta(0), now=now, behavior=AT_ONCE)
        memory = found.memory
    assert found.replicas == replicas


def sample(requests: int, in_flight: int = 0, started_at: float = 1.0) -> Sample:
    return replace(Sample("digits-00001-0", "digits-00001", started_at, requests, 0, 0, (), ()), in_flight=in_flight)


def after(sleep: Sleep, seconds: float, *samples: Sample) -> Sleep:
    return watched(sleep, samples, "digits-00001", NOW + timedelta(seconds=seconds))


def test_a_revision_sleeps_once_no_request_came_for_the_quiet_time() -> None:
    quiet = quiet_of(Behavior())
    sleep = after(Sleep(), 0, sample(5))
    for seconds in range(100, 600, 100):
        sleep = after(sleep, seconds, sample(5))
        assert not may_sleep(sleep, quiet, NOW + timedelta(seconds=seconds))
    assert may_sleep(sleep, quiet, NOW + timedelta(seconds=600))


@pytest.mark.parametrize(
    "interruption",
    [
        pytest.param([sample(6)], id="a request that was counted"),
        pytest.param([sample(5, in_flight=1)], id="one in flight"),
        pytest.param([sample(5, started_at=2.0)], id="another process"),
        pytest.param([], id="unknown counters"),
    ],
)
def test_the_quiet_time_begins_again(interruption: list[Sample]) -> None:
    sleep = after(after(Sleep(), 0, sample(5)), 300, *interruption)
    sleep = after(sleep, 301, *(interruption or [sample(5)]))
    assert not may_sleep(sleep, QUIET, NOW + timedelta(seconds=600))


def test_counters_of_others_say_nothing() -> None:
    gateway = replace(sample(9), source="gateway", in_flight=None)
    other = replace(sample(9), revision="digits-00002")
    assert after(Sleep(), 0, gateway, other) == Sleep()


def test_the_window_of_scaling_down_is_the_quiet_time() -> None:
    assert quiet_of(Behavior(down=ScalingRules(window_s=120))) == timedelta(minutes=2)
    assert quiet_of(Behavior(down=ScalingRules(window_s=0))) == SHORTEST_QUIET


def test_sleeps_are_added_up() -> None:
    first = asleep(Sleep(), NOW)
    assert first.is_asleep
    up = woken(first, NOW + timedelta(hours=2), (NOW + timedelta(hours=1)).timestamp())
    assert not up.is_asleep
    again = asleep(up, NOW + timedelta(hours=3))
    assert again.total_s(NOW + timedelta(hours=4)) == 2 * 3600
    assert stored_sleep({"sleep": sleep_json(again)}) == again
    assert stored_sleep({}) == Sleep()
    assert stored_sleep({"sleep": {"slept_at": 1.0, "unknown": 2}}) == Sleep(slept_at=1.0)
