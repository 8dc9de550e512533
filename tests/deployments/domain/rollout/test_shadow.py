"""The machine with a shadow: shares of copies in the place of weights, and what follows the last step."""

import itertools
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidTransition
from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.phases import Phase
from deployments.domain.policy import Gate, Policy, Step, Strategy, Then
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

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOLD = timedelta(seconds=10)
POLICY = Policy(
    name="shadow",
    strategy=Strategy.SHADOW,
    steps=(Step(mirror=10, hold=HOLD, gate=Gate()), Step(mirror=50, hold=HOLD)),
    progress_deadline=timedelta(minutes=2),
    then=Then.PAUSE,
)
READY = CanarySeen(replicas_wanted=1, replicas_ready=1)
GONE = CanarySeen(replicas_wanted=1, replicas_ready=0, message="out of memory")
GOOD = Finding(Verdict.SUCCESSFUL, "all within limits", 200, 2000)
BAD = Finding(Verdict.FAILED, "30 of 40 requests to the shadow failed", 40, 400)
UNDECIDED = Finding(Verdict.INCONCLUSIVE, "undecided", 40, 400)


def _then(then: Then) -> Policy:
    return replace(POLICY, then=then)


def _at(step_index: int, *, policy: Policy = POLICY, since: timedelta = timedelta(0)) -> RolloutState:
    """Return a rollout at a step whose share the gateway confirmed `since` ago; past the last one all traffic moves."""
    portion = Portion.of(policy.steps[step_index]) if step_index < len(policy.steps) else Portion(100)
    return replace(
        start(policy, NOW), phase=Phase.PROGRESSING, step_index=step_index, portion=portion, confirmed_at=NOW - since
    )


def _seen(finding: Finding | None = None, canary: CanarySeen = READY, confirmed: bool = True) -> Observation:
    return Observation(canary=canary, confirmed=confirmed, finding=finding)


PAUSED = advance(_at(1, since=HOLD), _seen(), NOW)


@pytest.mark.parametrize(
    ("state", "seen", "phase", "step_index", "shares", "code"),
    [
        pytest.param(
            start(POLICY, NOW), _seen(canary=GONE), "Pending", 0, (0, 0), "CanaryStarting", id="the shadow starts: wait"
        ),
        pytest.param(
            start(POLICY, NOW), _seen(), "Progressing", 0, (0, 10), "WaitingForGateway", id="it is ready: first share"
        ),
        pytest.param(_at(0), _seen(GOOD), "Progressing", 0, (0, 10), "Holding", id="good, but the hold is not over"),
        pytest.param(
            _at(0, since=HOLD),
            _seen(GOOD),
            "Progressing",
            1,
            (0, 50),
            "WaitingForGateway",
            id="good and held: next share",
        ),
        pytest.param(_at(0), _seen(BAD), "Degraded", 0, (0, 0), "AnalysisFailed", id="failed: no copies any more"),
        pytest.param(
            _at(0), _seen(GOOD, GONE), "Progressing", 0, (0, 0), "CanaryNotReady", id="it is gone: nothing is copied"
        ),
        pytest.param(
            _at(0),
            _seen(GOOD, replace(READY, restarts={"a": 3})),
            "Degraded",
            0,
            (0, 0),
            "CanaryCrashLooping",
            id="a shadow that crashes again and again",
        ),
        pytest.param(
            _at(0),
            _seen(UNDECIDED),
            "Paused",
            0,
            (0, 10),
            "PausedInconclusive",
            id="inconclusive: pause, go on copying",
        ),
        # --- then: pause
        pytest.param(
            _at(1, since=HOLD), _seen(), "Paused", 1, (0, 50), "PausedByStep", id="pause: the last step asks a person"
        ),
        pytest.param(PAUSED, _seen(), "Paused", 1, (0, 50), "PausedByStep", id="pause: it goes on copying meanwhile"),
        pytest.param(
            promote(PAUSED),
            _seen(confirmed=False),
            "Progressing",
            2,
            (0, 50),
            "WaitingForGateway",
            id="promoted: nothing moves before the gateway confirmed what it does now",
        ),
        pytest.param(
            promote(PAUSED), _seen(), "Progressing", 2, (100, 0), "Promoting", id="promoted: all traffic is asked for"
        ),
        pytest.param(
            _at(2), _seen(), "Healthy", 2, (100, 0), "Promoted", id="promoted: healthy once the gateway confirmed"
        ),
        # --- then: promote
        pytest.param(
            _at(1, policy=_then(Then.PROMOTE), since=HOLD),
            _seen(),
            "Progressing",
            2,
            (100, 0),
            "Promoting",
            id="promote: all traffic moves by itself",
        ),
        pytest.param(
            _at(2, policy=_then(Then.PROMOTE)),
            _seen(canary=GONE),
            "Progressing",
            2,
            (0, 0),
            "CanaryNotReady",
            id="promote: what is not ready gets no traffic",
        ),
        # --- then: end
        pytest.param(
            _at(1, policy=_then(Then.END), since=HOLD),
            _seen(),
            "Healthy",
            2,
            (0, 0),
            "ShadowEnded",
            id="end: healthy, and clients' traffic never moved",
        ),
        pytest.param(
            promote(
                advance(
                    _at(1, policy=replace(_then(Then.END), steps=(Step(mirror=1), Step(mirror=50, pause=True)))),
                    _seen(),
                    NOW,
                )
            ),
            _seen(),
            "Healthy",
            2,
            (0, 0),
            "ShadowEnded",
            id="end: whoever promotes its last pause ends it, too",
        ),
    ],
)
def test_advance(
    state: RolloutState, seen: Observation, phase: str, step_index: int, shares: tuple[int, int], code: str
) -> None:
    after = advance(state, seen, NOW)
    found = (after.portion.weight, after.portion.mirror)
    assert (after.phase, after.step_index, found, after.reason.code) == (phase, step_index, shares, code)


@pytest.mark.parametrize(
    ("state", "seen", "sentence"),
    [
        pytest.param(start(POLICY, NOW), _seen(canary=GONE), "0 of 1 replicas of the shadow are ready", id="starting"),
        pytest.param(
            start(POLICY, NOW), _seen(), "the gateway is to copy 10 % of the requests to the shadow", id="asked"
        ),
        pytest.param(
            _at(0),
            _seen(confirmed=False),
            "has yet to confirm that it copies 10 % of the requests to the shadow",
            id="behind",
        ),
        pytest.param(
            _at(0),
            _seen(BAD),
            "the shadow failed; it gets no copies any more, and clients never saw an answer of it",
            id="failed",
        ),
        pytest.param(
            _at(1, policy=_then(Then.END), since=HOLD),
            _seen(),
            "the shadow passed its 2 steps and ends; stable goes on serving clients",
            id="ended",
        ),
    ],
)
def test_the_reason_speaks_of_copies(state: RolloutState, seen: Observation, sentence: str) -> None:
    assert sentence in advance(state, seen, NOW).reason.message


def test_events_tell_copies_from_traffic() -> None:
    steps = [start(POLICY, NOW)]
    looks = [_seen(), _seen(GOOD), _seen(canary=GONE), promote, _seen(), _seen()]
    steps.append(advance(steps[-1], looks[0], NOW))  # type: ignore[arg-type]
    steps.append(advance(steps[-1], looks[1], NOW))  # type: ignore[arg-type]
    steps.append(advance(steps[-1], looks[2], NOW))  # type: ignore[arg-type]
    steps += [PAUSED, promote(PAUSED)]
    steps.append(advance(steps[-1], _seen(), NOW))
    steps.append(advance(steps[-1], _seen(), NOW))
    told = [[line.message for line in lines_between(a, b, "digits-00002")] for a, b in itertools.pairwise(steps)]
    assert told[0] == ["digits-00002 is to get copies of 10 % of the requests"]
    assert told[1] == ["the gateway copies 10 % of the requests to digits-00002"]
    assert told[2][1] == "digits-00002 is to get none of the requests until it is ready again"
    assert told[4] == ["the rollout to digits-00002 goes on after its pause"]
    assert told[5] == ["digits-00002 is to get 100 % of the requests"]
    assert told[6][0].startswith("the rollout to digits-00002 is Healthy")


def test_a_failed_shadow_can_be_retried_and_begins_with_its_first_share() -> None:
    again = retry(advance(_at(1), _seen(BAD), NOW), NOW)
    assert (again.phase, again.step_index, again.portion.mirror) == (Phase.PENDING, 0, 0)
    assert advance(again, _seen(), NOW).portion.mirror == 10


_OBSERVATIONS = st.builds(
    Observation,
    canary=st.one_of(
        st.none(),
        st.builds(
            CanarySeen,
            replicas_wanted=st.just(1),
            replicas_ready=st.integers(0, 1),
            restarts=st.dictionaries(st.just("a"), st.integers(0, 3)),
        ),
    ),
    confirmed=st.booleans(),
    finding=st.sampled_from([None, GOOD, BAD, UNDECIDED]),
)
_ACTS = st.sampled_from(["look", "look", "look", "promote", "abort", "retry"])


@given(
    then=st.sampled_from(list(Then)),
    life=st.lists(st.tuples(_ACTS, _OBSERVATIONS, st.integers(0, 60)), max_size=40),
)
def test_clients_are_only_served_by_what_was_promoted(then: Then, life: list[tuple[str, Observation, int]]) -> None:
    """On every path: copies or traffic, never both; and no traffic of clients but by promotion, of what is ready."""
    policy, now, promoted = _then(then), NOW, False
    state = start(policy, now)
    for act, seen, seconds in life:
        now += timedelta(seconds=seconds)
        before = state
        try:
            match act:
                case "promote":
                    state = promote(state)
                    promoted |= state.step is None
                case "abort":
                    state = abort(state, now, "alice")
                case "retry":
                    state, promoted = retry(state, now), False
                case _:
                    state = advance(state, seen, now)
        except InvalidTransition:
            continue
        assert not (state.portion.weight and state.portion.mirror)
        assert state.portion.mirror in (0, 10, 50)
        assert state.portion.weight in (0, 100)
        if state.portion.weight:
            assert then is Then.PROMOTE or (then is Then.PAUSE and promoted)
        if state.portion.weight > before.portion.weight or state.portion.mirror > before.portion.mirror:
            assert act == "look"
            assert seen.canary is not None
            assert seen.canary.is_ready
            assert seen.confirmed
        if state.phase in (Phase.DEGRADED, Phase.ABORTED):
            assert (state.portion.weight, state.portion.mirror) == (0, 0)
