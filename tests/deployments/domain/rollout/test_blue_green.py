"""A blue/green rollout's machine: tried on the preview address, then one switch."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.phases import Phase
from deployments.domain.policy import Gate, OnInconclusive, Policy, Step, Strategy
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
    supersede,
)
from deployments.domain.rollout.event_messages import lines_between

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOLD = timedelta(seconds=10)
POLICY = Policy("switch", (Step(100, HOLD, gate=Gate()),), Strategy.BLUE_GREEN)
READY = CanarySeen(replicas_wanted=2, replicas_ready=2)
GONE = CanarySeen(replicas_wanted=2, replicas_ready=0, message="out of memory")
GOOD = Finding(Verdict.SUCCESSFUL, "all within limits over 200 requests", 200, 1800)
BAD = Finding(Verdict.FAILED, "30 of 40 requests to the canary failed", 40, 360)
QUIET = Finding(Verdict.RUNNING, "no request has reached the canary", 0, 360)
UNDECIDED = Finding(Verdict.INCONCLUSIVE, "undecided 5m after the first request", 90, 900)


def _seen(finding: Finding | None = None, canary: CanarySeen | None = READY, *, confirmed: bool = True) -> Observation:
    return Observation(canary=canary, confirmed=confirmed, finding=finding, problem="silent")


def _previewed(policy: Policy = POLICY, since: timedelta = timedelta(0)) -> RolloutState:
    """Return a rollout whose preview the gateway confirmed `since` ago."""
    return replace(start(policy, NOW), phase=Phase.PROGRESSING, confirmed_at=NOW - since)


def _switched() -> RolloutState:
    return replace(_previewed(), step_index=1, portion=Portion(100), confirmed_at=None)


ASKING = replace(POLICY, steps=(Step(100, pause=True),))


@pytest.mark.parametrize(
    ("state", "seen", "expected"),
    [
        pytest.param(
            start(POLICY, NOW), _seen(canary=GONE), ("Pending", 0, 0, "CanaryStarting"), id="the canary starts: wait"
        ),
        pytest.param(
            start(POLICY, NOW),
            _seen(confirmed=False),
            ("Pending", 0, 0, "WaitingForGateway"),
            id="ready, but the gateway does not send the preview there yet: wait",
        ),
        pytest.param(
            start(POLICY, NOW), _seen(), ("Progressing", 0, 0, "WaitingForGateway"), id="ready: the preview, no weight"
        ),
        pytest.param(_previewed(), _seen(QUIET), ("Progressing", 0, 0, "NoTraffic"), id="nobody asks it: wait"),
        pytest.param(_previewed(), _seen(GOOD), ("Progressing", 0, 0, "Holding"), id="good, but the hold is not over"),
        pytest.param(
            _previewed(since=HOLD), _seen(GOOD), ("Progressing", 1, 100, "Promoting"), id="good and held: one switch"
        ),
        pytest.param(
            _previewed(since=HOLD),
            _seen(GOOD, confirmed=False),
            ("Progressing", 0, 0, "WaitingForGateway"),
            id="good and held, but the gateway lost the preview: wait",
        ),
        pytest.param(_previewed(), _seen(BAD), ("Degraded", 0, 0, "AnalysisFailed"), id="bad: no client saw it"),
        pytest.param(_previewed(), _seen(UNDECIDED), ("Paused", 0, 0, "PausedInconclusive"), id="undecided: ask"),
        pytest.param(
            _previewed(replace(POLICY, on_inconclusive=OnInconclusive.ABORT)),
            _seen(UNDECIDED),
            ("Aborted", 0, 0, "AnalysisInconclusive"),
            id="undecided: abort where the policy says so",
        ),
        pytest.param(_previewed(ASKING), _seen(), ("Paused", 0, 0, "PausedByStep"), id="a pause before the switch"),
        pytest.param(_previewed(), _seen(canary=GONE), ("Progressing", 0, 0, "CanaryNotReady"), id="it is gone"),
        pytest.param(_switched(), _seen(), ("Healthy", 1, 100, "Promoted"), id="the gateway confirmed the switch"),
        pytest.param(
            _switched(), _seen(canary=GONE), ("Progressing", 1, 0, "CanaryNotReady"), id="gone after the switch: back"
        ),
    ],
)
def test_one_tick(state: RolloutState, seen: Observation, expected: tuple[str, int, int, str]) -> None:
    after = advance(state, seen, NOW)
    assert (after.phase, after.step_index, after.portion.weight, after.reason.code) == expected


def test_promoting_a_paused_preview_switches_with_the_next_look() -> None:
    paused = advance(_previewed(ASKING), _seen(), NOW)
    assert advance(promote(paused), _seen(), NOW).portion.weight == 100


def test_sentences_and_events_speak_of_the_preview() -> None:
    first = advance(start(POLICY, NOW), _seen(), NOW)
    assert first.reason.message == "the gateway is to send what comes to the preview address to the canary"
    quiet = advance(first, _seen(QUIET), NOW)
    assert quiet.reason.message == (
        "the preview: no request has reached the canary; send requests to the preview address"
    )
    assert [line.message for line in lines_between(first, quiet, "digits-00002")] == [
        "the gateway sends what comes to the preview address to digits-00002"
    ]
    given_up = abort(quiet, NOW, "alice")
    assert given_up.reason.message == (
        "aborted by alice at the preview; the preview address is closed, and all traffic stays on stable"
    )
    assert retry(given_up, NOW).phase is Phase.PENDING
    replaced = supersede(quiet, NOW, "the stop of the service")
    assert replaced.reason.message == (
        "superseded by the stop of the service at the preview; the preview address is closed"
    )


_canaries = st.builds(CanarySeen, replicas_wanted=st.just(2), replicas_ready=st.integers(0, 2))
_findings = st.one_of(
    st.none(), st.builds(Finding, st.sampled_from(Verdict), st.just("evidence"), st.integers(0, 500), st.just(900))
)
_looks = st.builds(Observation, st.one_of(st.none(), _canaries), st.booleans(), st.just(""), _findings, st.just("x"))


@given(st.booleans(), st.booleans(), st.lists(st.tuples(_looks, st.integers(0, 5)), max_size=40))
def test_clients_see_nothing_or_all_of_it(pause: bool, gated: bool, looks: list[tuple[Observation, int]]) -> None:
    step = Step(100, timedelta(seconds=3), pause, Gate() if gated else None)
    state, now = start(replace(POLICY, steps=(step,)), NOW), NOW
    for seen, seconds in looks:
        now += timedelta(seconds=seconds)
        before, state = state, advance(state, seen, now)
        if state.phase is Phase.PAUSED and seconds == 5:
            state = promote(state)
        assert state.portion.weight in (0, 100)
        if state.portion.weight:
            assert state.step_index == 1, "no client before the preview was passed"
        if state.portion.weight > before.portion.weight:
            assert seen.canary is not None
            assert seen.canary.is_ready
            assert seen.confirmed
        if state.phase in (Phase.DEGRADED, Phase.ABORTED):
            assert state.portion.weight == 0
