"""The machine, one transition at a time, and what holds on every path through it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidTransition
from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.phases import Code, Phase
from deployments.domain.policy import DIRECT, Gate, OnInconclusive, Policy, Step
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
    supersede,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOLD = timedelta(seconds=10)
POLICY = Policy(
    name="careful",
    steps=(Step(10, HOLD, gate=Gate()), Step(25, HOLD, pause=True), Step(50)),
    progress_deadline=timedelta(minutes=2),
)
READY = CanarySeen(replicas_wanted=2, replicas_ready=2)
STARTING = CanarySeen(replicas_wanted=2, replicas_ready=0, message="loading the model")
HALF = CanarySeen(replicas_wanted=2, replicas_ready=1)
GOOD = Finding(Verdict.SUCCESSFUL, "all within limits over 200 requests", 200, 1800)
BAD = Finding(Verdict.FAILED, "30 of 40 requests to the canary failed", 40, 360)
MORE = Finding(Verdict.RUNNING, "0 of 40 requests failed; a verdict needs 100 requests", 40, 360)
QUIET = Finding(Verdict.RUNNING, "no request has reached the canary", 0, 360)
UNDECIDED = Finding(Verdict.INCONCLUSIVE, "undecided 5m after the first request", 90, 900)


def _seen(
    finding: Finding | None = None, canary: CanarySeen | None = READY, confirmed: bool = True, problem: str = ""
) -> Observation:
    return Observation(canary=canary, confirmed=confirmed, finding=finding, problem=problem)


def _pending(policy: Policy = POLICY) -> RolloutState:
    return start(policy, NOW)


def _at(step_index: int, *, policy: Policy = POLICY, since: timedelta = timedelta(0)) -> RolloutState:
    """Return a rollout at a step whose weight the gateway confirmed `since` ago."""
    weight = policy.steps[step_index].weight if step_index < len(policy.steps) else 100
    return replace(
        _pending(policy),
        phase=Phase.PROGRESSING,
        step_index=step_index,
        portion=Portion(weight),
        confirmed_at=NOW - since,
    )


def _paused(step_index: int = 1) -> RolloutState:
    return advance(_at(step_index, since=HOLD), _seen(GOOD), NOW)


@pytest.mark.parametrize(
    ("state", "seen", "phase", "step_index", "weight", "code"),
    [
        # --- Pending
        pytest.param(
            _pending(), _seen(canary=STARTING), "Pending", 0, 0, "CanaryStarting", id="the canary starts: wait"
        ),
        pytest.param(
            _pending(), _seen(canary=HALF), "Pending", 0, 0, "CanaryStarting", id="one of two replicas is not enough"
        ),
        pytest.param(
            _pending(),
            _seen(confirmed=False),
            "Pending",
            0,
            0,
            "WaitingForGateway",
            id="the canary is ready, but the gateway still drains an older one: wait",
        ),
        pytest.param(
            _pending(), _seen(), "Progressing", 0, 10, "WaitingForGateway", id="the canary is ready: first weight"
        ),
        pytest.param(
            _pending(DIRECT), _seen(), "Progressing", 0, 100, "Promoting", id="no steps: all traffic once it is ready"
        ),
        pytest.param(
            replace(_pending(), waiting_since=NOW - timedelta(minutes=2)),
            _seen(canary=STARTING),
            "Degraded",
            0,
            0,
            "ProgressDeadlineExceeded",
            id="not ready by the progress deadline",
        ),
        # --- Progressing
        pytest.param(
            replace(_at(0), confirmed_at=None),
            _seen(GOOD, confirmed=False),
            "Progressing",
            0,
            10,
            "WaitingForGateway",
            id="the weight is not confirmed: no clock runs, nothing moves",
        ),
        pytest.param(_at(0), _seen(QUIET), "Progressing", 0, 10, "NoTraffic", id="no traffic: wait"),
        pytest.param(_at(0), _seen(MORE), "Progressing", 0, 10, "AnalysisRunning", id="more evidence is needed: wait"),
        pytest.param(_at(0), _seen(GOOD), "Progressing", 0, 10, "Holding", id="good, but the hold is not over"),
        pytest.param(
            _at(0, since=HOLD), _seen(MORE), "Progressing", 0, 10, "AnalysisRunning", id="held, but not decided"
        ),
        pytest.param(
            _at(0, since=HOLD), _seen(GOOD), "Progressing", 1, 25, "WaitingForGateway", id="good and held: next weight"
        ),
        pytest.param(
            _at(0, since=HOLD),
            _seen(GOOD, confirmed=False),
            "Progressing",
            0,
            10,
            "WaitingForGateway",
            id="good and held, but the gateway lost the weight: wait",
        ),
        pytest.param(
            _at(0, since=HOLD),
            _seen(GOOD, canary=HALF),
            "Progressing",
            0,
            10,
            "CanaryNotReady",
            id="good and held, but a replica is missing: keep the weight, do not raise it",
        ),
        pytest.param(
            _at(0, since=HOLD),
            _seen(problem="the metrics cannot be read"),
            "Progressing",
            0,
            10,
            "MetricsUnavailable",
            id="no metrics: hold, no verdict",
        ),
        pytest.param(
            _at(2), _seen(problem="the metrics cannot be read"), "Progressing", 3, 100, "Promoting", id="ungated step"
        ),
        pytest.param(
            _at(0, since=HOLD),
            _seen(canary=None, problem="the agent is silent"),
            "Progressing",
            0,
            10,
            "ClusterUnavailable",
            id="the cluster cannot be read: nothing moves",
        ),
        pytest.param(
            _at(0), _seen(BAD), "Degraded", 0, 0, "AnalysisFailed", id="failed: all traffic to stable at once"
        ),
        pytest.param(
            replace(_at(0), confirmed_at=None),
            _seen(BAD, confirmed=False),
            "Degraded",
            0,
            0,
            "AnalysisFailed",
            id="failed while the gateway is behind: to stable at once all the same",
        ),
        pytest.param(
            _at(0), _seen(BAD, canary=STARTING), "Degraded", 0, 0, "AnalysisFailed", id="failed and gone: degraded"
        ),
        pytest.param(
            _at(0),
            _seen(GOOD, canary=STARTING),
            "Progressing",
            0,
            0,
            "CanaryNotReady",
            id="no replica of the canary is ready: its traffic goes to stable until one is",
        ),
        pytest.param(
            replace(_at(0), portion=Portion(), confirmed_at=None, waiting_since=NOW - timedelta(seconds=5)),
            _seen(GOOD),
            "Progressing",
            0,
            10,
            "WaitingForGateway",
            id="the canary is ready again: its weight comes back",
        ),
        pytest.param(
            replace(_at(0), portion=Portion(), confirmed_at=None),
            _seen(GOOD, confirmed=False),
            "Progressing",
            0,
            0,
            "WaitingForGateway",
            id="ready again, but the gateway has not confirmed weight 0 yet",
        ),
        pytest.param(
            replace(_at(0), waiting_since=NOW - timedelta(minutes=2)),
            _seen(GOOD, canary=HALF),
            "Degraded",
            0,
            0,
            "ProgressDeadlineExceeded",
            id="a replica is missing for the progress deadline",
        ),
        pytest.param(
            _at(0),
            _seen(GOOD, canary=replace(READY, restarts={"a": 3})),
            "Degraded",
            0,
            0,
            "CanaryCrashLooping",
            id="three restarts of a replica are a crash loop, even if it is ready just now",
        ),
        pytest.param(
            _at(0),
            _seen(GOOD, canary=replace(READY, restarts={"a": 2, "b": 2})),
            "Progressing",
            0,
            10,
            "Holding",
            id="two restarts each of two replicas are none",
        ),
        pytest.param(
            replace(_at(0), restart_baseline={"a": 5}),
            _seen(GOOD, canary=replace(READY, restarts={"a": 7})),
            "Progressing",
            0,
            10,
            "Holding",
            id="restarts before this attempt do not count",
        ),
        pytest.param(
            _at(0),
            _seen(UNDECIDED),
            "Paused",
            0,
            10,
            "PausedInconclusive",
            id="inconclusive: pause, as the policy says",
        ),
        pytest.param(
            _at(0, policy=replace(POLICY, on_inconclusive=OnInconclusive.ABORT)),
            _seen(UNDECIDED),
            "Aborted",
            0,
            0,
            "AnalysisInconclusive",
            id="inconclusive: abort, as the policy says",
        ),
        pytest.param(_at(1), _seen(), "Progressing", 1, 25, "Holding", id="a pausing step is held first"),
        pytest.param(_at(1, since=HOLD), _seen(), "Paused", 1, 25, "PausedByStep", id="and then waits for a person"),
        # --- Paused
        pytest.param(
            _paused(), _seen(GOOD), "Paused", 1, 25, "PausedByStep", id="a pause lasts, however good the canary is"
        ),
        pytest.param(_paused(), _seen(BAD), "Degraded", 1, 0, "AnalysisFailed", id="a canary that fails in a pause"),
        pytest.param(
            _paused(), _seen(canary=STARTING), "Paused", 1, 0, "CanaryNotReady", id="a canary that dies in a pause"
        ),
        pytest.param(
            replace(_paused(), portion=Portion()),
            _seen(),
            "Paused",
            1,
            25,
            "WaitingForGateway",
            id="and comes back, still paused",
        ),
        pytest.param(
            promote(_paused()), _seen(), "Progressing", 2, 50, "WaitingForGateway", id="after promote: next weight"
        ),
        pytest.param(
            promote(_paused()),
            _seen(canary=HALF),
            "Progressing",
            2,
            25,
            "CanaryNotReady",
            id="after promote, but a replica is missing: the weight does not rise",
        ),
        # --- the last move
        pytest.param(_at(2), _seen(), "Progressing", 3, 100, "Promoting", id="after the last step: all traffic"),
        pytest.param(
            replace(_at(3), confirmed_at=None),
            _seen(confirmed=False),
            "Progressing",
            3,
            100,
            "WaitingForGateway",
            id="not healthy before the gateway sends all traffic",
        ),
        pytest.param(replace(_at(3), confirmed_at=None), _seen(), "Healthy", 3, 100, "Promoted", id="healthy"),
    ],
)
def test_advance(state: RolloutState, seen: Observation, phase: str, step_index: int, weight: int, code: str) -> None:
    after = advance(state, seen, NOW)
    assert (after.phase, after.step_index, after.portion.weight, after.reason.code) == (phase, step_index, weight, code)


@pytest.mark.parametrize(
    ("state", "seen", "sentence"),
    [
        pytest.param(
            _pending(),
            _seen(canary=STARTING),
            "0 of 2 replicas of the canary are ready (loading the model)",
            id="starting",
        ),
        pytest.param(
            _at(0, since=timedelta(seconds=6)),
            _seen(GOOD),
            "step 1 of 3 (10 %) is held for another 4s; all within limits over 200 requests",
            id="holding",
        ),
        pytest.param(
            _at(0), _seen(MORE), "step 1 of 3 (10 %): 0 of 40 requests failed; a verdict needs 100", id="running"
        ),
        pytest.param(
            _at(0),
            _seen(BAD),
            "failed at step 1 of 3 (10 %): 30 of 40 requests to the canary failed; all traffic goes to stable",
            id="failed",
        ),
        pytest.param(
            _at(0),
            _seen(canary=None, problem="the agent is silent"),
            "nothing moves: the agent is silent",
            id="cluster",
        ),
        pytest.param(_at(0), _seen(problem="no scrape"), "holds until there are metrics: no scrape", id="metrics"),
        pytest.param(
            _at(0),
            Observation(READY, confirmed=False, gateway_message="digits-00001 is not ready, so its 90 % go elsewhere"),
            "sends 10 % of the requests to the canary (digits-00001 is not ready, so its 90 % go elsewhere)",
            id="the gateway's own words",
        ),
        pytest.param(_at(1, since=HOLD), _seen(), "step 2 of 3 (25 %) waits for somebody to promote", id="paused"),
        pytest.param(
            _paused(), _seen(replace(GOOD, message="300 requests")), "or abort it; 300 requests", id="later in a pause"
        ),
        pytest.param(_paused(), _seen(), "all within limits over 200 requests", id="a pause without metrics"),
        pytest.param(
            advance(_at(0), _seen(UNDECIDED), NOW),
            _seen(GOOD),
            "undecided 5m after the first request; promote or abort it",
            id="what was undecided stays said in its pause",
        ),
    ],
)
def test_the_reason_tells_why_it_waits_with_its_evidence(state: RolloutState, seen: Observation, sentence: str) -> None:
    assert sentence in advance(state, seen, NOW).reason.message


def test_after_a_last_step_of_100_there_is_nothing_left_to_move() -> None:
    policy = replace(POLICY, steps=(Step(100, HOLD),))
    after = advance(_at(0, policy=policy, since=HOLD), _seen(), NOW)
    assert (after.phase, after.step_index, after.portion.weight) == (Phase.HEALTHY, 1, 100)


def test_a_time_in_which_nobody_could_look_is_passed_over() -> None:
    state = replace(_at(0), waiting_since=NOW)
    night = timedelta(hours=8)
    after = pass_over(state, night)
    assert (after.confirmed_at, after.waiting_since) == (NOW + night, NOW + night)
    assert pass_over(_pending(), night) == _pending()


@pytest.mark.parametrize(
    ("held_s", "left"), [(0, "12h"), (20, "12h"), (61, "11h59m"), (12 * 3600 - 601, "11m"), (12 * 3600 - 600, "10m")]
)
def test_the_rest_of_a_long_hold_is_said_in_minutes(held_s: int, left: str) -> None:
    state = _at(0, since=timedelta(seconds=held_s))
    steps = (replace(state.policy.steps[0], hold=timedelta(hours=12)), *state.policy.steps[1:])
    after = advance(replace(state, policy=replace(state.policy, steps=steps, deadline=None)), _seen(GOOD), NOW)
    assert f"is held for another {left};" in after.reason.message


def test_hold_counts_from_when_the_gateway_confirmed_the_weight() -> None:
    asked = advance(_pending(), _seen(), NOW)
    later = NOW + timedelta(minutes=5)
    confirmed = advance(asked, _seen(GOOD), later)
    assert (confirmed.confirmed_at, confirmed.reason.code) == (later, Code.HOLDING)
    assert advance(confirmed, _seen(GOOD), later + HOLD).step_index == 1


def test_a_replica_that_comes_back_in_time_resets_the_progress_deadline() -> None:
    waiting = advance(_at(0), _seen(MORE, canary=HALF), NOW)
    back = advance(waiting, _seen(MORE), NOW + timedelta(minutes=1, seconds=59))
    assert waiting.waiting_since == NOW
    assert back.waiting_since is None


def test_an_inconclusive_pause_can_be_promoted() -> None:
    after = promote(advance(_at(0), _seen(UNDECIDED), NOW))
    assert (after.phase, after.step_index) == (Phase.PROGRESSING, 1)


def test_promote_of_the_last_step_moves_all_traffic() -> None:
    policy = replace(POLICY, steps=(Step(10, pause=True),))
    after = advance(promote(advance(_at(0, policy=policy), _seen(), NOW)), _seen(), NOW)
    assert (after.step_index, after.portion.weight) == (1, 100)


@pytest.mark.parametrize("state", [_pending(), _at(0), _at(3)])
def test_only_a_paused_rollout_can_be_promoted(state: RolloutState) -> None:
    with pytest.raises(InvalidTransition, match="only a paused rollout can be promoted; this one is"):
        promote(state)


@pytest.mark.parametrize("state", [_pending(), _at(0), _paused(), _at(3)])
def test_whatever_is_in_progress_can_be_aborted(state: RolloutState) -> None:
    after = abort(state, NOW, "alice")
    assert (after.phase, after.portion.weight, after.finished_at) == (Phase.ABORTED, 0, NOW)
    assert after.reason.code is Code.ABORTED
    assert after.reason.message.startswith("aborted by alice at ")


HEALTHY = advance(_at(3), _seen(), NOW)
DEGRADED = advance(_at(0), _seen(BAD), NOW)
ABORTED = abort(_at(1), NOW, "alice")


@pytest.mark.parametrize("state", [HEALTHY, DEGRADED, ABORTED])
def test_what_is_over_cannot_be_aborted_and_is_not_superseded(state: RolloutState) -> None:
    with pytest.raises(InvalidTransition, match="this rollout is over, so it cannot be aborted; it is") as refused:
        abort(state, NOW, "alice")
    assert ("`fairlead rollouts undo`" in refused.value.message) is (state is HEALTHY), (
        "the way back, where there is one"
    )
    assert supersede(state, NOW, "rollout 7") is state


def test_a_newer_rollout_supersedes_an_older_one() -> None:
    after = supersede(_at(1), NOW, "a rollout to version 3")
    assert (after.phase, after.portion.weight, after.reason.code) == (Phase.ABORTED, 0, Code.SUPERSEDED)
    assert after.reason.message == "superseded by a rollout to version 3 at step 2 of 3 (25 %)"


def test_replicas_that_do_not_come_are_told_with_the_time_they_were_waited_for() -> None:
    waiting = replace(_pending(), waiting_since=NOW - timedelta(minutes=2))
    after = advance(waiting, _seen(canary=STARTING), NOW)
    assert " are ready (loading the model) after 2m of waiting, the progress deadline; " in after.reason.message


@pytest.mark.parametrize("state", [DEGRADED, ABORTED])
def test_retry_begins_at_the_first_step_again(state: RolloutState) -> None:
    later = NOW + timedelta(hours=1)
    after = retry(state, later)
    assert (after.phase, after.step_index, after.portion.weight, after.attempt) == (Phase.PENDING, 0, 0, 2)
    assert (after.attempt_started_at, after.finished_at, after.verdict) == (later, None, Verdict.RUNNING)
    assert after.policy == state.policy


def test_a_retry_does_not_count_the_restarts_of_the_attempt_before() -> None:
    looping = replace(READY, restarts={"a": 3})
    degraded = advance(_at(0), _seen(GOOD, canary=looping), NOW)
    again = advance(retry(degraded, NOW), _seen(canary=looping), NOW)
    assert again.phase is Phase.PROGRESSING
    assert advance(again, _seen(canary=replace(READY, restarts={"a": 6})), NOW).phase is Phase.DEGRADED


@pytest.mark.parametrize("state", [_pending(), _at(0), _paused(), HEALTHY])
def test_only_degraded_and_aborted_can_be_retried(state: RolloutState) -> None:
    with pytest.raises(InvalidTransition, match="only a degraded or aborted rollout can be retried; this one is"):
        retry(state, NOW)


# --- what holds on every path -----------------------------------------------------------------------------------------
_gates = st.sampled_from([None, Gate(), Gate(max_slow_percent=None)])


@st.composite
def _policies(draw: st.DrawFn) -> Policy:
    weights = sorted(draw(st.sets(st.integers(1, 100), max_size=4)))
    steps = tuple(
        Step(weight, timedelta(seconds=draw(st.integers(0, 5))), draw(st.booleans()), draw(_gates))
        for weight in weights
    )
    return Policy(
        "p", steps, on_inconclusive=draw(st.sampled_from(OnInconclusive)), progress_deadline=timedelta(seconds=8)
    )


_canaries = st.one_of(
    st.none(),
    st.builds(
        CanarySeen,
        replicas_wanted=st.just(2),
        replicas_ready=st.integers(0, 2),
        restarts=st.dictionaries(st.sampled_from("ab"), st.integers(0, 3), max_size=2),
    ),
)
_findings = st.one_of(
    st.none(), st.builds(Finding, st.sampled_from(Verdict), st.just("evidence"), st.integers(0, 500), st.just(900))
)
_observations = st.builds(Observation, _canaries, st.booleans(), st.just(""), _findings, st.just("silent"))
_verbs = st.sampled_from(["tick", "tick", "tick", "tick", "tick", "promote", "abort", "retry", "supersede"])


def _act(state: RolloutState, verb: str, seen: Observation, now: datetime) -> RolloutState:
    try:
        match verb:
            case "promote":
                return promote(state)
            case "abort":
                return abort(state, now, "alice")
            case "retry":
                return retry(state, now)
            case "supersede":
                return supersede(state, now, "another")
            case _:
                return advance(state, seen, now)
    except InvalidTransition:
        return state


@given(_policies(), st.lists(st.tuples(_verbs, _observations, st.integers(0, 5)), max_size=40))
def test_on_every_path(policy: Policy, moves: list[tuple[str, Observation, int]]) -> None:
    state, now = start(policy, NOW), NOW
    for verb, seen, seconds in moves:
        now += timedelta(seconds=seconds)
        before, state = state, _act(state, verb, seen, now)
        assert 0 <= state.portion.weight <= 100
        assert state.reason.message
        assert not state.reason.message.endswith(".")
        if before.phase.is_finished and verb != "retry":
            assert state == before, "what is over stays as it is"
        if state.phase in (Phase.DEGRADED, Phase.ABORTED):
            assert state.portion.weight == 0, "stable has all traffic"
        if state.phase is Phase.HEALTHY:
            assert state.portion.weight == 100
        if state.phase is Phase.PENDING:
            assert state.portion.weight == 0
        assert state.phase.is_finished == (state.finished_at is not None)
        if state.portion.weight > before.portion.weight:
            assert verb == "tick", "only what was seen raises a weight"
            assert seen.canary is not None
            assert seen.canary.is_ready
            assert seen.confirmed, "the gateway had confirmed the weight before"
            assert state.portion.weight in {*(step.weight for step in policy.steps), 100}
        if (
            verb == "tick"
            and seen.canary is not None
            and seen.canary.replicas_ready == 0
            and not before.phase.is_finished
        ):
            assert state.portion.weight == 0, "no weight to a canary that is not ready"
        if verb == "tick" and seen.canary is None:
            assert (state.phase, state.portion.weight, state.step_index) == (
                before.phase,
                before.portion.weight,
                before.step_index,
            )
        if state.attempt == before.attempt and state.step_index > before.step_index:
            assert state.step_index == before.step_index + 1, "no step is left out"


@given(_policies())
def test_a_good_canary_reaches_every_weight_in_order_and_then_all_traffic(policy: Policy) -> None:
    state, now, weights = start(policy, NOW), NOW, [0]
    for _ in range(100):
        now += timedelta(seconds=2)
        state = advance(state, _seen(GOOD), now)
        if state.phase is Phase.PAUSED:
            state = promote(state)
        if state.portion.weight != weights[-1]:
            weights.append(state.portion.weight)
    assert state.phase is Phase.HEALTHY
    steps = [step.weight for step in policy.steps]
    assert weights == [0, *steps, *([100] if 100 not in steps else [])]
