"""The machine's deadline for a whole rollout, and the analysis in the background of its steps."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidTransition
from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.phases import Phase
from deployments.domain.policy import Gate, OnDeadline, Policy, Step
from deployments.domain.rollout import (
    CanarySeen,
    Observation,
    Portion,
    RolloutState,
    abort,
    advance,
    pass_over,
    promote,
    retry,
    start,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
LATE = NOW + HOUR
POLICY = Policy(
    name="careful", steps=(Step(10), Step(50, hold=timedelta(minutes=5), pause=True)), deadline=HOUR, background=Gate()
)
ASKING = replace(POLICY, on_deadline=OnDeadline.PAUSE)
READY = CanarySeen(replicas_wanted=1, replicas_ready=1)
GONE = CanarySeen(replicas_wanted=1, replicas_ready=0)
GOOD = Finding(Verdict.SUCCESSFUL, "all within limits", 200, 2000)
BAD = Finding(Verdict.FAILED, "30 of 40 requests to the canary failed", 40, 400)


def _at(step_index: int, policy: Policy = POLICY, phase: Phase = Phase.PROGRESSING) -> RolloutState:
    portion = Portion.of(policy.steps[step_index]) if step_index < len(policy.steps) else Portion(100)
    return replace(start(policy, NOW), phase=phase, step_index=step_index, portion=portion, confirmed_at=NOW)


def _seen(
    finding: Finding | None = None,
    background: Finding | None = None,
    canary: CanarySeen | None = READY,
    confirmed: bool = True,
) -> Observation:
    return Observation(canary, confirmed, finding=finding, background=background, problem="it is silent")


@pytest.mark.parametrize(
    ("state", "seen", "phase", "code"),
    [
        pytest.param(_at(1), _seen(), "Aborted", "DeadlineExceeded", id="in a hold"),
        pytest.param(_at(1), _seen(canary=GONE), "Aborted", "DeadlineExceeded", id="while its replicas are away"),
        pytest.param(_at(1, phase=Phase.PAUSED), _seen(), "Aborted", "DeadlineExceeded", id="in a pause"),
        pytest.param(start(POLICY, NOW), _seen(), "Aborted", "DeadlineExceeded", id="before it began"),
        pytest.param(_at(2), _seen(), "Healthy", "Promoted", id="not once all traffic is to move"),
        pytest.param(_at(1), _seen(BAD), "Degraded", "AnalysisFailed", id="a failure is told first"),
        pytest.param(_at(1), _seen(canary=None), "Progressing", "ClusterUnavailable", id="not while nobody can look"),
        pytest.param(_at(1, ASKING), _seen(), "Paused", "PausedByDeadline", id="pause: it waits for a person"),
        pytest.param(start(ASKING, NOW), _seen(), "Progressing", "WaitingForGateway", id="pause: not before it began"),
    ],
)
def test_what_is_not_over_by_its_deadline(state: RolloutState, seen: Observation, phase: str, code: str) -> None:
    early = advance(state, seen, LATE - timedelta(seconds=1))
    assert early.reason.code not in ("DeadlineExceeded", "PausedByDeadline")
    after = advance(state, seen, LATE)
    assert (after.phase, after.reason.code) == (phase, code)
    if after.phase is Phase.ABORTED:
        assert after.portion == Portion()
        assert after.reason.message.startswith("the rollout's deadline of 1h passed at ")
        assert after.reason.message.endswith("all traffic goes to stable")


def test_a_deadline_pauses_once_and_whoever_promotes_it_has_the_time_it_takes() -> None:
    paused = advance(_at(0, ASKING), _seen(), LATE)
    assert paused.portion == Portion(10), "the canary keeps what it has"
    assert paused.reason.message == "the rollout's deadline of 1h passed at step 1 of 2 (10 %); promote or abort it"
    later = advance(paused, _seen(GOOD), LATE + HOUR)
    assert later.reason == paused.reason, "what was late stays said"
    on = advance(promote(later), _seen(), LATE + HOUR)
    assert (on.phase, on.step_index, on.portion) == (Phase.PROGRESSING, 1, Portion(50))
    again = advance(on, _seen(), LATE + 9 * HOUR)
    assert (again.phase, again.reason.code) == (Phase.PROGRESSING, "Holding")


def test_one_that_waits_for_a_person_anyway_waits_on() -> None:
    paused = advance(_at(1, ASKING), _seen(), LATE - timedelta(minutes=1))
    assert paused.reason.code == "PausedByStep"
    assert advance(paused, _seen(), LATE).reason.code == "PausedByStep"


def test_time_that_nobody_could_look_at_counts_for_no_deadline() -> None:
    state = pass_over(_at(1), timedelta(hours=8))
    assert advance(state, _seen(), LATE).phase is not Phase.ABORTED
    assert advance(state, _seen(), LATE + timedelta(hours=8)).phase is Phase.ABORTED


def test_a_retry_has_the_whole_time_again() -> None:
    again = retry(advance(_at(1), _seen(), LATE), LATE)
    assert again.deadline_at == LATE + HOUR
    assert start(replace(POLICY, deadline=None), NOW).deadline_at is None


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(_at(0), id="at a step without an analysis of its own"),
        pytest.param(_at(1), id="in a hold"),
        pytest.param(_at(1, phase=Phase.PAUSED), id="in a pause"),
    ],
)
def test_what_fails_in_the_background_fails_at_once(state: RolloutState) -> None:
    after = advance(state, _seen(GOOD, BAD), NOW)
    assert (after.phase, after.portion, after.reason.code) == (Phase.DEGRADED, Portion(), "AnalysisFailed")
    assert after.reason.message.startswith("the analysis in the background failed at step ")


def test_what_is_good_in_the_background_lets_no_step_pass() -> None:
    gated = replace(_at(0), policy=replace(POLICY, steps=(Step(10, gate=Gate()), Step(50))))
    assert advance(gated, _seen(None, GOOD), NOW).reason.code == "MetricsUnavailable"
    more = Finding(Verdict.RUNNING, "more requests are needed", 10, 100)
    assert advance(gated, _seen(more, GOOD), NOW).reason.code == "AnalysisRunning"
    assert advance(_at(0), _seen(None, more), NOW).step_index == 1, "nor does it hold one back"


_LOOKS = st.builds(
    _seen,
    st.sampled_from([None, GOOD, BAD]),
    st.sampled_from([None, GOOD, GOOD, BAD]),
    st.sampled_from([None, READY, READY, GONE]),
    st.booleans(),
)


@given(
    on_deadline=st.sampled_from(list(OnDeadline)),
    life=st.lists(
        st.tuples(st.sampled_from(["look", "look", "look", "promote", "abort"]), _LOOKS, st.integers(0, 900)),
        max_size=30,
    ),
)
def test_on_every_path_nothing_goes_on_by_itself_past_its_deadline(
    on_deadline: OnDeadline, life: list[tuple[str, Observation, int]]
) -> None:
    state, now = start(replace(POLICY, on_deadline=on_deadline), NOW), NOW
    for act, seen, seconds in life:
        now += timedelta(seconds=seconds)
        before = state
        try:
            match act:
                case "promote":
                    state = promote(state)
                case "abort":
                    state = abort(state, now, "alice")
                case _:
                    state = advance(state, seen, now)
        except InvalidTransition:
            continue
        looked = act == "look" and seen.canary is not None and not before.phase.is_finished
        if looked and before.deadline_at is not None and now >= before.deadline_at and before.step is not None:
            assert state.step_index == before.step_index or before.phase is Phase.PENDING
            if on_deadline is OnDeadline.ABORT:
                assert state.phase in (Phase.ABORTED, Phase.DEGRADED)
            elif before.phase is not Phase.PENDING:
                assert state.phase in (Phase.PAUSED, Phase.DEGRADED)
        if looked and before.step is not None and before.phase is not Phase.PENDING and seen.background is BAD:
            assert state.phase is Phase.DEGRADED
        if state.phase.is_finished and state.phase is not Phase.HEALTHY:
            assert not state.portion
