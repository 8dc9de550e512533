"""How many replicas a rollout asks for of each side."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from deployments.domain.autoscaling.replica_count import Bounds
from deployments.domain.autoscaling.rollout_capacity import at_full, bounds_of_canary, bounds_of_stable
from deployments.domain.phases import Phase
from deployments.domain.policy import DIRECT, Policy, Step, Strategy
from deployments.domain.rollout import CanarySeen, Observation, Portion, RolloutState, advance, start
from deployments.domain.service_file.scaling import Scaling
from deployments.domain.service_state.desired import RevisionState, Role

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
STABLE = RevisionState("a-00001", Role.STABLE, "1", "file:///x", "sha256:0", replicas=4, scaling=Scaling(1, 8))
CANARY = replace(STABLE, name="a-00002", role=Role.CANARY, replicas=1)
CAREFUL = Policy("careful", (Step(10), Step(50)))


def _at(weight: int, step_index: int, policy: Policy = CAREFUL) -> RolloutState:
    portion = Portion(weight)
    return replace(
        start(policy, NOW), phase=Phase.PROGRESSING, portion=portion, step_index=step_index, confirmed_at=NOW
    )


@pytest.mark.parametrize(
    ("rollout", "scaling", "least"),
    [
        pytest.param(start(CAREFUL, NOW), Scaling(1, 8), 1, id="before the first step: a tenth of four, rounded up"),
        pytest.param(_at(10, 1), Scaling(1, 8), 2, id="the next step's half, before its weight"),
        pytest.param(_at(50, 2), Scaling(1, 8), 4, id="all, before all traffic moves"),
        pytest.param(_at(50, 1), Scaling(3, 8), 3, id="never fewer than its own least"),
        pytest.param(_at(50, 2), Scaling(1, 3), 3, id="never more than its own most"),
        pytest.param(_at(10, 0), Scaling(2, 2), 2, id="a fixed number"),
        pytest.param(start(DIRECT, NOW), Scaling(1, 8), 4, id="without steps: all from the start"),
        pytest.param(
            start(Policy("b", (Step(100),), strategy=Strategy.BLUE_GREEN), NOW), Scaling(1, 8), 4, id="a preview: all"
        ),
        pytest.param(
            start(Policy("s", (Step(mirror=50),), strategy=Strategy.SHADOW), NOW),
            Scaling(1, 8),
            2,
            id="a shadow: its copies",
        ),
    ],
)
def test_the_canary_has_the_part_of_stables_replicas_that_its_weight_asks_for(
    rollout: RolloutState, scaling: Scaling, least: int
) -> None:
    canary = replace(CANARY, scaling=scaling)
    bounds = bounds_of_canary(STABLE, canary, rollout)
    assert (bounds.least, bounds.most) == (least, scaling.max_replicas)


def test_stable_keeps_what_it_has_during_a_rollout_only() -> None:
    assert bounds_of_stable(STABLE, None) == Bounds(1, 8)
    during = bounds_of_stable(STABLE, start(CAREFUL, NOW))
    assert (during.least, during.most) == (4, 8)


@pytest.mark.parametrize(
    ("ready", "weight", "code"),
    [
        pytest.param(1, 10, "CanaryNotReady", id="one of two"),
        pytest.param(2, 50, "WaitingForGateway", id="enough"),
    ],
)
def test_no_weight_is_asked_for_before_there_are_replicas_for_it(ready: int, weight: int, code: str) -> None:
    canary = CanarySeen(replicas_wanted=1, replicas_ready=ready, replicas_at_full=at_full(STABLE, CANARY))
    after = advance(_at(10, 0), Observation(canary, confirmed=True), NOW)
    assert (after.step_index, after.portion.weight, after.reason.code) == (1, weight, code)
    if ready < 2:
        assert after.reason.message == "step 2 of 2 (50 %) waits: 1 of the 2 replicas that it needs are ready"
