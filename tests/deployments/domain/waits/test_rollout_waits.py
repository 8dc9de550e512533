"""Why a rollout waits: every condition of the machine has all of its parts, and the sentences say what will be."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from deployments.domain.phases import Code, Phase, Reason
from deployments.domain.policy import ApprovalRule, Gate, Metric, OnInconclusive, Policy, Step, Strategy, Then
from deployments.domain.rollout import Portion, RolloutState, start
from deployments.domain.waits import Counted, wait_of_rollout
from deployments.domain.waits.wait import about

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
POLICY = Policy(
    "careful", steps=(Step(10, timedelta(minutes=1), gate=Gate(min_requests=200)), Step(25, pause=True), Step(50))
)
MEASURED = Policy("m", (Step(10, gate=Gate(metrics=(Metric("queue-time", "q", maximum=1.0),))),))
# A code that is no end needs a sentence on what would change it.
ENDS = {
    Code.PROMOTED,
    Code.SHADOW_ENDED,
    Code.ANALYSIS_FAILED,
    Code.ANALYSIS_INCONCLUSIVE,
    Code.CANARY_CRASH_LOOPING,
    Code.PROGRESS_DEADLINE_EXCEEDED,
    Code.WEBHOOK_REFUSED,
    Code.WEBHOOK_UNDECIDED,
    Code.DEADLINE_EXCEEDED,
    Code.REJECTED,
    Code.ABORTED,
    Code.SUPERSEDED,
}


def _state(code: Code, policy: Policy = POLICY, **changes: object) -> RolloutState:
    state = replace(
        start(policy, NOW), phase=Phase.PROGRESSING, portion=Portion(10), reason=Reason(code, "what was seen")
    )
    return replace(state, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("code", [code for code in Code if code not in ENDS])
@pytest.mark.parametrize("step_index", range(4))
@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("counted", [None, Counted(), Counted(40, NOW, NOW + 20 * SECOND)])
def test_every_condition_has_all_of_its_parts(
    code: Code, step_index: int, strategy: Strategy, counted: Counted | None
) -> None:
    policy = replace(POLICY, strategy=strategy)
    wait = wait_of_rollout(_state(code, policy, step_index=step_index), NOW, counted)

    assert wait is not None
    assert (wait.condition, wait.evidence, wait.since) == (code, "what was seen", NOW)
    assert len(wait.changes_when) > 20
    assert not wait.changes_when.endswith(".")


@pytest.mark.parametrize("phase", [phase for phase in Phase if phase.is_finished])
def test_what_is_over_does_not_wait(phase: Phase) -> None:
    assert wait_of_rollout(_state(Code.ABORTED, phase=phase), NOW, None) is None


@pytest.mark.parametrize(
    ("state", "counted", "sentence"),
    [
        pytest.param(
            _state(
                Code.AWAITING_APPROVAL,
                Policy("p", (Step(10, pause=True, approval=ApprovalRule(2)), Step(50))),
                phase=Phase.PAUSED,
            ),
            None,
            "2 different people approve it (step 2 of 2 with 50 % follows), or somebody rejects or aborts it",
            id="approvals of a step",
        ),
        pytest.param(
            _state(
                Code.AWAITING_APPROVAL,
                Policy("p", (Step(10), Step(50)), approval=ApprovalRule()),
                phase=Phase.PENDING,
            ),
            None,
            "somebody approves it (step 1 of 2 begins), or somebody rejects or aborts it",
            id="an approval before it begins",
        ),
        pytest.param(
            _state(Code.CANARY_STARTING, waiting_since=NOW),
            None,
            "enough replicas of the canary become ready; if they are not by 2026-01-01 12:02:00 UTC, the rollout is "
            "Degraded",
            id="the canary: until its deadline",
        ),
        pytest.param(
            _state(Code.WAITING_FOR_GATEWAY),
            None,
            "the gateway confirms that it sends 10 % of the requests to the canary",
            id="the gateway: what it was asked for",
        ),
        pytest.param(
            _state(Code.WAITING_FOR_GATEWAY, replace(POLICY, strategy=Strategy.SHADOW), portion=Portion(mirror=10)),
            None,
            "the gateway confirms that it copies 10 % of the requests to the shadow",
            id="the gateway: copies",
        ),
        pytest.param(
            _state(Code.HOLDING, confirmed_at=NOW),
            Counted(300),
            "the hold ends at 2026-01-01 12:01:00 UTC; then step 2 of 3 with 25 % follows",
            id="a hold: when it ends and what follows",
        ),
        pytest.param(
            _state(Code.HOLDING, step_index=1, confirmed_at=NOW),
            None,
            "the hold ends at 2026-01-01 12:00:00 UTC; then it waits for somebody to promote it",
            id="a hold before a pause",
        ),
        pytest.param(
            _state(Code.NO_TRAFFIC),
            Counted(),
            "clients send requests to the service; a verdict needs 200 requests of the canary",
            id="no traffic: how much is needed",
        ),
        pytest.param(
            _state(Code.ANALYSIS_RUNNING),
            Counted(40, NOW, NOW + 20 * SECOND),
            "the canary has had at least 160 requests more, about 80 seconds at the present 2 per second; undecided at "
            "2026-01-01 12:05:00 UTC, the rollout pauses for a person",
            id="an analysis: how many more, how long, and what happens else",
        ),
        pytest.param(
            _state(Code.ANALYSIS_RUNNING),
            Counted(250, NOW, NOW + 20 * SECOND, more_requests=1000),
            "the canary has had at least 1000 requests more, about 80 seconds at the present 12.5 per second; "
            "undecided at 2026-01-01 12:05:00 UTC, the rollout pauses for a person",
            id="an analysis that needs more than the policy's least number",
        ),
        pytest.param(
            _state(Code.ANALYSIS_RUNNING, replace(POLICY, on_inconclusive=OnInconclusive.ABORT)),
            Counted(250, NOW, NOW + 20 * SECOND),
            "further requests make the evidence clear; undecided at 2026-01-01 12:05:00 UTC, the rollout is Aborted",
            id="an analysis that has its requests and is not clear",
        ),
        pytest.param(
            _state(Code.ANALYSIS_RUNNING, MEASURED),
            Counted(250, NOW, NOW + 20 * SECOND),
            "further requests and looks at queue-time make the evidence clear; undecided at 2026-01-01 12:05:00 UTC, "
            "the rollout pauses for a person",
            id="an analysis that waits for numbers of Prometheus",
        ),
        pytest.param(
            _state(Code.PAUSED_BY_STEP, step_index=1),
            None,
            "somebody promotes it (step 3 of 3 with 50 % follows) or aborts it",
            id="a pause: what a promote does",
        ),
        pytest.param(
            _state(Code.PAUSED_BY_STEP, step_index=2),
            None,
            "somebody promotes it (all requests go to the new revision) or aborts it",
            id="the last pause",
        ),
        pytest.param(
            _state(Code.PAUSED_BY_STEP, replace(POLICY, strategy=Strategy.SHADOW, then=Then.END), step_index=2),
            None,
            "somebody promotes it (the shadow ends) or aborts it",
            id="the last pause of a shadow that ends",
        ),
    ],
)
def test_what_would_change_it(state: RolloutState, counted: Counted | None, sentence: str) -> None:
    wait = wait_of_rollout(state, NOW, counted)
    assert wait is not None
    assert wait.changes_when == sentence


def test_the_sample_is_of_requests_only_where_the_evidence_is() -> None:
    def size(code: Code) -> int | None:
        wait = wait_of_rollout(_state(code), NOW, Counted(40))
        return None if wait is None else wait.sample_size

    assert size(Code.ANALYSIS_RUNNING) == 40
    assert size(Code.WAITING_FOR_GATEWAY) is None


def test_a_rate_needs_time_to_be_known() -> None:
    assert Counted(40, NOW, NOW + SECOND).per_second is None
    assert Counted(0, NOW, NOW + 9 * SECOND).per_second is None
    assert Counted(40, NOW, NOW + 4 * SECOND).per_second == 10


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "about 1 second"),
        (80, "about 80 seconds"),
        (170, "about 3 minutes"),
        (3600, "about 60 minutes"),
        (9000, "about 2 hours"),
    ],
)
def test_a_span_to_come_is_an_estimate(seconds: float, text: str) -> None:
    assert about(timedelta(seconds=seconds)) == text


def test_a_promotion_that_was_asked_for_waits_for_the_gateway() -> None:
    asked = wait_of_rollout(_state(Code.PROMOTING, step_index=3, portion=Portion(100)), NOW, None)
    assert asked is not None
    assert asked.changes_when == "the gateway confirms that it sends 100 % of the requests to the canary"
    still = wait_of_rollout(_state(Code.PROMOTING, step_index=1), NOW, None)
    assert still is not None
    assert still.changes_when == "the next look at the cluster lets the gateway be asked for step 2 of 3 (25 %)"
