"""Waves of an upgrade, and which services start next."""

import pytest

from deployments.domain.phases import Code
from deployments.domain.phases import Phase as RolloutPhase
from fleet.domain.waves import Member, State, is_complete, next_members, outcome_of, waves

W, U, D, F, S = State.WAITING, State.UPGRADING, State.UPGRADED, State.FAILED, State.SKIPPED


@pytest.mark.parametrize(
    ("count", "percent", "expected"),
    [
        (0, 25, []),
        (1, 25, [1]),
        (2, 1, [1, 2]),
        (8, 25, [1, 2, 2, 3, 3, 4, 4, 5]),
        (5, 100, [1, 2, 2, 2, 2]),
        (5, 30, [1, 2, 2, 3, 3]),
    ],
)
def test_the_first_wave_is_one_service_and_each_further_one_a_share_of_all(
    count: int, percent: int, expected: list[int]
) -> None:
    assert waves(count, percent) == expected


@pytest.mark.parametrize(
    ("states", "at_once", "expected"),
    [
        ([(1, W), (2, W), (2, W)], 5, (0,)),
        ([(1, U), (2, W), (2, W)], 5, ()),
        ([(1, D), (2, W), (2, W), (3, W)], 5, (1, 2)),
        ([(1, D), (2, W), (2, W), (3, W)], 1, (1,)),
        ([(1, D), (2, U), (2, W), (3, W)], 1, ()),
        ([(1, D), (2, U), (2, W), (3, W)], 2, (2,)),
        ([(1, D), (2, D), (2, U), (3, W)], 5, ()),
        ([(1, F), (2, W)], 5, (1,)),
        ([(1, S), (2, S)], 5, ()),
    ],
)
def test_a_wave_begins_when_the_one_before_has_ended_and_so_many_go_at_once(
    states: list[tuple[int, State]], at_once: int, expected: tuple[int, ...]
) -> None:
    members = [Member(place, wave, state) for place, (wave, state) in enumerate(states)]
    assert next_members(members, at_once) == expected


def test_it_is_complete_when_every_service_is_over() -> None:
    assert is_complete([Member(1, 1, D), Member(2, 2, F), Member(3, 2, S)])
    assert not is_complete([Member(1, 1, D), Member(2, 2, U)])
    assert not is_complete([Member(1, 1, W)])


@pytest.mark.parametrize(
    ("phase", "code", "expected"),
    [
        (RolloutPhase.PENDING, Code.CANARY_STARTING, U),
        (RolloutPhase.PAUSED, Code.CANARY_STARTING, U),
        (RolloutPhase.HEALTHY, Code.CANARY_STARTING, D),
        (RolloutPhase.DEGRADED, Code.CANARY_NOT_READY, F),
        (RolloutPhase.ABORTED, Code.CANARY_NOT_READY, F),
        (RolloutPhase.ABORTED, Code.SUPERSEDED, S),
    ],
)
def test_a_service_is_where_its_rollout_is(phase: RolloutPhase, code: Code, expected: State) -> None:
    assert outcome_of(phase, code) is expected
