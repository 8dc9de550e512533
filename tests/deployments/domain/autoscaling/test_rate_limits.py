"""How fast a number of replicas may change, by the policies of autoscaling/v2."""

from datetime import UTC, datetime, timedelta

import pytest

from deployments.domain.autoscaling.rate_limits import Memory, least_now, most_now
from deployments.domain.autoscaling.replica_count import Bounds, Reading, decide, window_of
from deployments.domain.service_file.scaling import ScaleMetric
from integrations.clusters.base import Behavior, ScalingPolicy, ScalingRules, Selection, Unit

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOW = timedelta(minutes=5)
PODS, PERCENT = ScalingPolicy(Unit.PODS, 2, 60), ScalingPolicy(Unit.PERCENT, 50, 15)


def _ago(seconds: int, number: int) -> tuple[tuple[datetime, int], ...]:
    return ((NOW - timedelta(seconds=seconds), number),)


@pytest.mark.parametrize(
    ("rules", "memory", "most", "least"),
    [
        pytest.param(ScalingRules(), Memory(), 20, 0, id="the defaults: twice as many, and all of them"),
        pytest.param(ScalingRules(policies=(PODS,)), Memory(), 12, 8, id="by a number"),
        pytest.param(ScalingRules(policies=(PERCENT,)), Memory(), 15, 5, id="by a share"),
        pytest.param(ScalingRules(policies=(PODS, PERCENT)), Memory(), 15, 5, id="by what allows most"),
        pytest.param(ScalingRules(None, Selection.MIN, (PODS, PERCENT)), Memory(), 12, 8, id="by what allows least"),
        pytest.param(ScalingRules(select=Selection.DISABLED), Memory(), 10, 10, id="not at all"),
        pytest.param(ScalingRules(policies=(PODS,)), Memory(added=_ago(59, 2)), 10, 6, id="two came within the period"),
        pytest.param(ScalingRules(policies=(PODS,)), Memory(added=_ago(60, 2)), 12, 8, id="they came before it"),
        pytest.param(ScalingRules(policies=(PODS,)), Memory(removed=_ago(9, 2)), 14, 10, id="two went within it"),
    ],
)
def test_policies_limit_what_is_added_and_taken_away(
    rules: ScalingRules, memory: Memory, most: int, least: int
) -> None:
    assert most_now(10, memory, rules, NOW) == most
    assert least_now(10, memory, rules, NOW) == least


def _course(behavior: Behavior, values: dict[int, float], replicas: int) -> dict[int, int]:
    """Return the number of replicas at each second; `values` are requests in flight at all, from their second on."""
    memory, seen, load = Memory(), {}, 0.0
    for second in range(0, 601, 5):
        load = values.get(second, load)
        reading = Reading(ScaleMetric.CONCURRENCY, 10, load / replicas, replicas)
        decision = decide(
            replicas,
            [reading],
            Bounds(1, 100),
            memory,
            window=window_of(behavior, WINDOW),
            now=NOW + timedelta(seconds=second),
            behavior=behavior,
        )
        replicas, memory = decision.replicas, decision.memory
        seen[second] = replicas
    return seen


def test_a_window_for_scaling_up_waits_until_the_load_has_lasted() -> None:
    behavior = Behavior(up=ScalingRules(window_s=60))
    seen = _course(behavior, {0: 10, 100: 40, 130: 10, 200: 40}, 1)
    assert {second for second, number in seen.items() if number > 1 and second <= 200} == set(), (
        "a peak of 30 s is none"
    )
    assert seen[255] == 1
    assert seen[260] == 4


def test_a_service_says_for_how_long_fewer_must_have_been_enough() -> None:
    seen = _course(Behavior(down=ScalingRules(window_s=20)), {0: 40, 100: 10}, 4)
    assert (seen[115], seen[120]) == (4, 1)
    assert _course(Behavior(down=ScalingRules(window_s=0)), {0: 40, 100: 10}, 4)[100] == 1


def test_replicas_go_one_after_the_other_where_a_policy_says_so() -> None:
    one_a_minute = ScalingRules(window_s=0, policies=(ScalingPolicy(Unit.PODS, 1, 60),))
    seen = _course(Behavior(down=one_a_minute), {0: 40, 100: 10}, 4)
    assert [seen[second] for second in (95, 100, 155, 160, 215, 220)] == [4, 3, 3, 2, 2, 1]


def test_a_tolerance_of_its_own_holds_in_its_direction_alone() -> None:
    behavior = Behavior(up=ScalingRules(tolerance=0.5), down=ScalingRules(window_s=0, tolerance=0.0))
    assert _course(behavior, {0: 59}, 4)[600] == 4
    assert _course(behavior, {0: 61}, 4)[600] == 7
    assert _course(behavior, {0: 39}, 4)[600] == 4
    assert _course(behavior, {0: 30}, 4)[600] == 3
