"""The machine with a canary that begins with copies, goes on with a group, and ends with weights."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidTransition
from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.phases import Phase
from deployments.domain.policy import Gate, Policy, Step
from deployments.domain.rollout import (
    CanarySeen,
    Observation,
    Portion,
    RolloutState,
    abort,
    advance,
    promote,
    retry,
    start,
)
from deployments.domain.rollout.event_messages import lines_between
from integrations.clusters.base import HeaderMatch, MatchKind

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOLD = timedelta(seconds=10)
BETA = (HeaderMatch("x-group", MatchKind.EXACT, ("beta",)),)
POLICY = Policy(
    name="progressive",
    steps=(
        Step(mirror=20, hold=HOLD, gate=Gate()),
        Step(mirror=100),
        Step(match=BETA, hold=HOLD, gate=Gate()),
        Step(10, match=BETA),
        Step(50, pause=True),
    ),
)
READY = CanarySeen(replicas_wanted=1, replicas_ready=1, replicas_at_full=1)
GONE = CanarySeen(replicas_wanted=1, replicas_ready=0, message="out of memory")
GOOD = Finding(Verdict.SUCCESSFUL, "all within limits", 200, 2000)
BAD = Finding(Verdict.FAILED, "30 of 40 requests to the canary failed", 40, 400)
QUIET = Finding(Verdict.RUNNING, "no request has reached the canary in this step yet", 0, 400)


def _at(step_index: int, since: timedelta = timedelta(0)) -> RolloutState:
    """Return a rollout at a step whose portion the gateway confirmed `since` ago."""
    portion = Portion.of(POLICY.steps[step_index])
    return replace(
        start(POLICY, NOW), phase=Phase.PROGRESSING, step_index=step_index, portion=portion, confirmed_at=NOW - since
    )


def _seen(finding: Finding | None = None, canary: CanarySeen = READY, confirmed: bool = True) -> Observation:
    return Observation(canary=canary, confirmed=confirmed, finding=finding)


@pytest.mark.parametrize(
    ("state", "seen", "step_index", "portion", "sentence"),
    [
        pytest.param(
            start(POLICY, NOW),
            _seen(),
            0,
            Portion(mirror=20),
            "the gateway is to copy 20 % of the requests to the canary",
            id="copies",
        ),
        pytest.param(
            _at(0),
            _seen(confirmed=False),
            0,
            Portion(mirror=20),
            "that it copies 20 % of the requests",
            id="unconfirmed",
        ),
        pytest.param(
            _at(0, HOLD), _seen(GOOD), 1, Portion(mirror=100), "the gateway is to copy 100 %", id="more copies"
        ),
        pytest.param(
            _at(1, HOLD),
            _seen(GOOD),
            2,
            Portion(match=BETA),
            "send the requests with x-group: beta to",
            id="then a group",
        ),
        pytest.param(
            _at(2),
            _seen(QUIET),
            2,
            Portion(match=BETA),
            "step 3 of 5 (x-group: beta): no request has reached the canary in this step yet; "
            "send requests with x-group: beta",
            id="a group that sends nothing",
        ),
        pytest.param(
            _at(2, HOLD),
            _seen(GOOD),
            3,
            Portion(10, match=BETA),
            "send the requests with x-group: beta and 10 % of the others to the canary",
            id="then a weight beside it",
        ),
        pytest.param(
            _at(3, HOLD), _seen(GOOD), 4, Portion(50), "send 50 % of the requests to the canary", id="then all"
        ),
        pytest.param(
            _at(2), _seen(GOOD, GONE), 2, Portion(), "(x-group: beta) waits: 0 of 1 replicas", id="it is gone"
        ),
        pytest.param(
            _at(1),
            _seen(BAD),
            1,
            Portion(),
            "no copies any more, and clients never saw an answer of it",
            id="bad copies",
        ),
        pytest.param(_at(2), _seen(BAD), 2, Portion(), "failed; all traffic goes to stable", id="a bad group"),
    ],
)
def test_advance(state: RolloutState, seen: Observation, step_index: int, portion: Portion, sentence: str) -> None:
    after = advance(state, seen, NOW)
    assert (after.step_index, after.portion) == (step_index, portion)
    assert sentence in after.reason.message


def test_from_copies_to_a_group_in_one_update_and_only_from_what_was_confirmed() -> None:
    """The gateway has either the copies or the group, never both and never neither."""
    waits = advance(promote(replace(_at(1), phase=Phase.PAUSED)), _seen(confirmed=False), NOW)
    assert (waits.step_index, waits.portion, waits.reason.code) == (2, Portion(mirror=100), "WaitingForGateway")
    after = advance(waits, _seen(), NOW)
    assert (after.portion, after.confirmed_at) == (Portion(match=BETA), None)


def test_the_next_step_is_judged_by_its_own_evidence_even_where_it_gives_the_same() -> None:
    twice = replace(POLICY, steps=(Step(match=BETA), Step(match=BETA, gate=Gate()), Step(50)))
    state = replace(_at(2), policy=twice, step_index=0)
    after = advance(state, _seen(GOOD), NOW)
    assert (after.step_index, after.confirmed_at) == (1, None)


def test_events_tell_copies_a_group_and_a_share_apart() -> None:
    def told(before: RolloutState, after: RolloutState) -> list[str]:
        return [line.message for line in lines_between(before, after, "digits-00002")]

    group = replace(_at(2), confirmed_at=None)
    assert told(_at(1), group) == ["digits-00002 is to get the requests with x-group: beta"]
    assert told(group, _at(2)) == ["the gateway sends the requests with x-group: beta to digits-00002"]
    assert told(_at(3), replace(_at(4), confirmed_at=None)) == ["digits-00002 is to get 50 % of the requests"]
    assert told(start(POLICY, NOW), _at(0)) == [
        "the gateway copies 20 % of the requests to digits-00002",
        "digits-00002 is to get copies of 20 % of the requests",
    ]


_STEPS = st.builds(
    lambda copies, group, weights: (
        *(Step(mirror=share, hold=HOLD) for share in sorted(copies)),
        *(Step(match=BETA, gate=Gate()) for _ in range(group)),
        *(Step(weight, match=BETA if group else (), pause=weight % 2 == 0) for weight in sorted(weights)),
    ),
    st.sets(st.integers(1, 100), max_size=2),
    st.integers(0, 2),
    st.sets(st.integers(1, 99), max_size=3),
).filter(bool)
_LOOKS = st.builds(
    Observation,
    canary=st.sampled_from([None, READY, READY, READY, GONE, replace(READY, restarts={"a": 3})]),
    confirmed=st.booleans(),
    finding=st.sampled_from([None, GOOD, GOOD, BAD, QUIET]),
)
_ACTS = st.sampled_from(["look", "look", "look", "promote", "abort", "retry"])


@given(steps=_STEPS, life=st.lists(st.tuples(_ACTS, _LOOKS, st.integers(0, 30)), max_size=40))
def test_on_every_path_it_gets_copies_or_clients_and_more_only_from_what_was_confirmed(
    steps: tuple[Step, ...], life: list[tuple[str, Observation, int]]
) -> None:
    policy, now = replace(POLICY, steps=steps), NOW
    state = start(policy, now)
    for act, seen, seconds in life:
        now += timedelta(seconds=seconds)
        before = state
        try:
            match act:
                case "promote":
                    state = promote(state)
                case "abort":
                    state = abort(state, now, "alice")
                case "retry":
                    state = retry(state, now)
                case _:
                    state = advance(state, seen, now)
        except InvalidTransition:
            continue
        portion = state.portion
        assert not (portion.mirror and portion.has_clients), "copies or clients, never both"
        assert portion in {Portion(), Portion(100), *(Portion.of(step) for step in steps)}
        if portion not in (before.portion, Portion()):
            assert act == "look", "only what was seen moves anything"
            assert seen.canary is not None
            assert seen.canary.is_ready
            assert seen.confirmed, "the gateway had confirmed what it did before"
        if state.is_mirroring:
            assert not portion.has_clients, "while it is compared no client sees it"
        if state.phase in (Phase.DEGRADED, Phase.ABORTED, Phase.PENDING):
            assert not portion
        if act == "look" and seen.canary is GONE and not before.phase.is_finished:
            assert not portion, "nothing to what is not ready"


@given(steps=_STEPS)
def test_a_good_canary_goes_through_all_of_it_in_order(steps: tuple[Step, ...]) -> None:
    state, now, portions = start(replace(POLICY, steps=steps), NOW), NOW, [Portion()]
    for _ in range(60):
        now += timedelta(seconds=5)
        state = advance(state, _seen(GOOD), now)
        if state.phase is Phase.PAUSED:
            state = promote(state)
        if state.portion != portions[-1]:
            portions.append(state.portion)
    assert state.phase is Phase.HEALTHY
    wanted = [Portion(), *(Portion.of(step) for step in steps), Portion(100)]
    assert portions == [each for index, each in enumerate(wanted) if index == 0 or each != wanted[index - 1]]
