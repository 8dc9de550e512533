"""A rollout that takes the canary's replicas out of stable's."""

import pytest

from common.errors import InvalidInput
from deployments.domain.policy import parse_policy, policy_json
from deployments.domain.rollout.surge import shared
from deployments.models import Revision
from deployments.services import rollout_abort, rollout_retry
from integrations.clusters.base import ObservedScaling
from tests.deployments._support.platform import Platform

STEPS = [{"weight": 25}, {"weight": 50}]


@pytest.mark.parametrize(
    ("full", "percent", "expected"),
    [
        (4, 25, (3, 1)),
        (4, 50, (2, 2)),
        (4, 100, (1, 3)),
        (3, 50, (1, 2)),
        (2, 10, (1, 1)),
        (2, 100, (1, 1)),
        (1, 100, (1, 1)),
    ],
)
def test_who_has_how_many(full: int, percent: int, expected: tuple[int, int]) -> None:
    assert shared(full, percent) == expected


def test_there_are_never_more_and_no_weight_comes_before_the_replicas_for_it(platform: Platform) -> None:
    begin(platform, replicas=4)
    most, seen = 0, set()

    def over() -> bool:
        nonlocal most
        now = wanted(platform)
        if platform.rollout().phase != "Healthy":
            most = max(most, sum(now.values()))
            weight = platform.cluster.weights().get("digits-00002", 0)
            observed = platform.cluster.observe("default", "digits").revision("digits-00002")
            assert weight == 0 or (observed is not None and observed.ready_replicas >= shared(4, weight)[1])
            seen.add((weight, now["digits-00001"], now.get("digits-00002", 0)))
        return platform.rollout().phase == "Healthy"

    platform.until(over)
    assert most == 4
    assert {(25, 3, 1), (50, 2, 2), (100, 1, 3)} <= seen
    assert wanted(platform)["digits-00002"] == 4, "it has all of them at the end"
    platform.until(lambda: wanted(platform) == {"digits-00002": 4})


def test_none_is_made_before_stable_has_given_one_up(platform: Platform) -> None:
    begin(platform, replicas=4)
    platform.turn(settle=False)
    assert wanted(platform) == {"digits-00001": 3, "digits-00002": 0}
    platform.turn(settle=False)
    assert wanted(platform) == {"digits-00001": 3, "digits-00002": 0}
    platform.turn()
    assert wanted(platform) == {"digits-00001": 3, "digits-00002": 1}


def test_an_abort_gives_them_back_and_a_retry_begins_from_all_of_them(platform: Platform) -> None:
    begin(platform, replicas=4)
    platform.until(lambda: platform.cluster.weights().get("digits-00002") == 50)
    rollout_abort(rollout_id=platform.rollout().pk, actor="bob", now=platform.clock())
    platform.turn()
    assert wanted(platform)["digits-00001"] == 4
    rollout_retry(rollout_id=platform.rollout().pk, actor="bob", now=platform.clock())
    platform.until(lambda: platform.rollout().phase == "Healthy")
    platform.until(lambda: wanted(platform) == {"digits-00002": 4})


def test_a_single_replica_is_not_taken_away(platform: Platform) -> None:
    begin(platform, replicas=1)
    platform.until(lambda: platform.cluster.weights().get("digits-00002") == 25)
    assert wanted(platform) == {"digits-00001": 1, "digits-00002": 1}


def test_nobody_else_sets_numbers_meanwhile(platform: Platform) -> None:
    platform.live(maxReplicas=8, scaleMetric="concurrency", scaleTarget=10)
    platform.cluster.autoscaled["digits-00001"] = ObservedScaling(5)
    platform.version(2)
    platform.policy(name="shared", steps=[{"weight": 40, "pause": True}], surge=False)
    platform.start("2", "shared")
    platform.until(lambda: platform.rollout().phase == "Paused")
    assert wanted(platform) == {"digits-00001": 3, "digits-00002": 2}, "of the five that the autoscaler had come to"
    assert [each.autoscaling for each in platform.cluster.desired["default", "digits"].revisions] == [None, None]
    platform.metrics.in_flight.update({"digits-00001": 80, "digits-00002": 80})
    for _ in range(10):
        platform.turn(seconds=10)
    assert wanted(platform) == {"digits-00001": 3, "digits-00002": 2}


def test_where_stable_has_to_answer_all_it_is_refused() -> None:
    for changed in ({"steps": [{"mirror": 10}, {"weight": 50}]}, {"strategy": "shadow"}, {"strategy": "blueGreen"}):
        steps = [{"weight": 50}]
        with pytest.raises(InvalidInput) as refused:
            parse_policy({"name": "shared", "steps": steps, "surge": False, **changed})
        assert refused.value.field == "surge"


def test_the_policy_says_it_again() -> None:
    policy = parse_policy({"name": "shared", "steps": STEPS, "surge": False})
    assert policy.surge is False
    assert parse_policy(policy_json(policy)) == policy
    assert "surge" not in policy_json(parse_policy({"name": "shared", "steps": STEPS}))


def begin(platform: Platform, *, replicas: int) -> None:
    """Start a rollout without surge; its first turn has not come yet."""
    platform.live(replicas=replicas)
    platform.version(2)
    platform.policy(name="shared", steps=STEPS, surge=False, scaleDownDelay="1h")
    platform.start("2", "shared")
    assert Revision.objects.get(number=2).replicas == 0


def wanted(platform: Platform) -> dict[str, int]:
    return {each.name: each.replicas for each in platform.cluster.desired["default", "digits"].revisions}
