"""What the answers of systems outside mean, and the machine at a step that asks them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from deployments.domain.analysis.verdict import Finding, Verdict
from deployments.domain.phases import Code, Phase
from deployments.domain.policy import (
    ApprovalRule,
    Gate,
    OnInconclusive,
    Policy,
    Step,
    StepWebhook,
    Strategy,
    When,
    parse_policy,
)
from deployments.domain.policy import policy_json as written
from deployments.domain.rollout import CanarySeen, Observation, Portion, RolloutState, advance, pass_webhooks, start
from deployments.domain.rollout.webhooks import Answer, Asked, Ruling, ask_again_after, read_answer, rule, to_ask

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
READY = CanarySeen(replicas_wanted=1, replicas_ready=1)
URL = "https://ci.example/hook"
BEFORE = StepWebhook("change", URL, When.BEFORE)
AFTER = StepWebhook("tests", URL)
GOOD = Finding(Verdict.SUCCESSFUL, "all well", 200, 1800)


@pytest.mark.parametrize(
    ("status", "text", "answer", "message"),
    [
        pytest.param(200, '{"verdict": "go"}', Answer.GO, "", id="go"),
        pytest.param(200, '{"verdict": "no", "message": "3 failed"}', Answer.NO, "3 failed", id="no, with a reason"),
        pytest.param(200, '{"verdict": "wait", "message": 7}', Answer.WAIT, "", id="a message that is no text"),
        pytest.param(204, '{"verdict": "go"}', Answer.UNAVAILABLE, "it answered 204, not 200", id="another 2xx"),
        pytest.param(500, '{"verdict": "no"}', Answer.UNAVAILABLE, "it answered 500", id="an error is no no"),
        pytest.param(302, "", Answer.UNAVAILABLE, "it answered 302", id="a redirect"),
        pytest.param(None, "it did not answer", Answer.UNAVAILABLE, "it did not answer", id="no answer"),
        pytest.param(200, "ok", Answer.UNAVAILABLE, "it did not answer {", id="no JSON"),
        pytest.param(200, '"go"', Answer.UNAVAILABLE, "it did not answer {", id="no object"),
        pytest.param(200, '{"verdict": "GO"}', Answer.UNAVAILABLE, "it did not answer {", id="another word"),
        pytest.param(200, '{"verdict": ["go"]}', Answer.UNAVAILABLE, "it did not answer {", id="a list"),
        pytest.param(200, '{"verdict": "go", "message": "', Answer.UNAVAILABLE, "it did not", id="cut off"),
        pytest.param(200, "[" * 900, Answer.UNAVAILABLE, "it did not answer {", id="deep"),
        pytest.param(200, '{"verdict":"no","message":"a\\n\\u0007b\\u202ec"}', Answer.NO, "a b c", id="odd letters"),
    ],
)
def test_only_a_clear_word_decides(status: int | None, text: str, answer: Answer, message: str) -> None:
    said, why = read_answer(status, text)
    assert said is answer
    assert why.startswith(message)


@given(st.none() | st.integers(100, 599), st.text(max_size=1000))
def test_whatever_is_answered_is_read_and_what_is_no_json_never_decides(status: int | None, text: str) -> None:
    said, message = read_answer(status, text)
    assert len(message) <= 300
    assert message.isprintable()
    if said.is_decided:
        assert status == 200
        assert said.value in text


def test_it_is_asked_again_later_each_time_and_at_least_once_a_minute() -> None:
    waits = [ask_again_after(tries).total_seconds() for tries in (1, 2, 3, 4, 5, 6, 99)]
    assert waits == [5, 10, 20, 40, 60, 60, 60]


def policy(*webhooks: StepWebhook, **step: Any) -> Policy:
    return Policy("asking", (Step(10, webhooks=webhooks, **step), Step(50)))


def asked(answer: Answer, name: str = "tests", overdue: bool = False, step_index: int = 0) -> Asked:
    return Asked(step_index, name, answer, "said so", 1, overdue)


def seen(*answers: Asked, finding: Finding | None = None) -> Observation:
    return Observation(canary=READY, confirmed=True, webhooks=answers, finding=finding)


def at_step(of: Policy) -> RolloutState:
    return replace(start(of, NOW), phase=Phase.PROGRESSING, portion=Portion(10), confirmed_at=NOW)


@pytest.mark.parametrize(
    ("answers", "phase", "step_index", "code", "said"),
    [
        pytest.param((), "Progressing", 0, "WaitingForWebhook", "tests was not asked yet", id="not asked"),
        pytest.param(
            (asked(Answer.WAIT),), "Progressing", 0, "WaitingForWebhook", "webhook tests says wait: said so", id="wait"
        ),
        pytest.param(
            (asked(Answer.UNAVAILABLE),),
            "Progressing",
            0,
            "WaitingForWebhook",
            "webhook tests gave no answer that counts: said so",
            id="an outage promotes nothing and fails nothing",
        ),
        pytest.param((asked(Answer.GO),), "Progressing", 1, "WaitingForGateway", "50 %", id="go"),
        pytest.param((asked(Answer.NO),), "Degraded", 0, "WebhookRefused", "said no: said so", id="no"),
        pytest.param(
            (asked(Answer.WAIT, overdue=True),), "Paused", 0, "PausedByWebhook", "promote or abort it", id="overdue"
        ),
        pytest.param(
            (asked(Answer.GO, step_index=1),), "Progressing", 0, "WaitingForWebhook", "not asked", id="another step's"
        ),
    ],
)
def test_a_step_that_asks_a_webhook_at_its_end(
    answers: tuple[Asked, ...], phase: str, step_index: int, code: str, said: str
) -> None:
    after = advance(at_step(policy(AFTER)), seen(*answers), NOW)
    assert (after.phase, after.step_index, after.reason.code) == (phase, step_index, code)
    assert said in after.reason.message


@pytest.mark.parametrize("strategy", Strategy)
def test_a_webhook_before_the_first_step_keeps_all_traffic_from_it(strategy: Strategy) -> None:
    of = replace(policy(BEFORE), strategy=strategy)
    if strategy is Strategy.BLUE_GREEN:
        of = replace(of, steps=(Step(100, webhooks=(BEFORE,)),))
    held = advance(start(of, NOW), seen(), NOW)
    assert (held.phase, held.portion.weight, held.reason.code) == (Phase.PENDING, 0, Code.WAITING_FOR_WEBHOOK)
    begun = advance(held, seen(asked(Answer.GO, "change")), NOW)
    assert (begun.phase, begun.step_index) == (Phase.PROGRESSING, 0)
    assert advance(held, seen(asked(Answer.NO, "change")), NOW).phase is Phase.DEGRADED


def test_a_webhook_before_a_later_step_keeps_the_weight_of_the_one_before() -> None:
    of = Policy("asking", (Step(10), Step(50, webhooks=(BEFORE,))))
    held = advance(at_step(of), seen(), NOW)
    assert (held.step_index, held.portion.weight, held.reason.code) == (1, 10, Code.WAITING_FOR_WEBHOOK)
    still = advance(held, seen(asked(Answer.UNAVAILABLE, "change", step_index=1)), NOW)
    assert (still.step_index, still.portion.weight) == (1, 10)
    assert advance(still, seen(asked(Answer.GO, "change", step_index=1)), NOW).portion.weight == 50


def test_it_is_asked_only_after_analysis_and_hold() -> None:
    of = policy(AFTER, gate=Gate(), hold=timedelta(seconds=10))
    more = Finding(Verdict.RUNNING, "40 of 100", 40, 360)
    assert advance(at_step(of), seen(finding=more), NOW).reason.code is Code.ANALYSIS_RUNNING
    assert advance(at_step(of), seen(finding=GOOD), NOW).reason.code is Code.HOLDING
    later = NOW + timedelta(seconds=10)
    assert advance(at_step(of), seen(finding=GOOD), later).reason.code is Code.WAITING_FOR_WEBHOOK


def test_all_of_several_have_to_say_go_and_one_no_is_enough() -> None:
    of = policy(AFTER, StepWebhook("load", URL))
    one = advance(at_step(of), seen(asked(Answer.GO), asked(Answer.WAIT, "load")), NOW)
    assert (one.step_index, "load says wait" in one.reason.message) == (0, True)
    assert advance(at_step(of), seen(asked(Answer.GO), asked(Answer.GO, "load")), NOW).step_index == 1
    assert advance(at_step(of), seen(asked(Answer.WAIT), asked(Answer.NO, "load")), NOW).phase is Phase.DEGRADED


def test_undecided_at_its_deadline_is_as_the_policy_says_and_a_person_may_let_it_pass() -> None:
    of = policy(AFTER, pause=True, approval=ApprovalRule())
    paused = advance(at_step(of), seen(asked(Answer.WAIT, overdue=True)), NOW)
    assert paused.reason.code is Code.PAUSED_BY_WEBHOOK
    assert not paused.asks_for_approval, "nobody approves a step whose evidence is not all there"
    assert advance(paused, seen(asked(Answer.WAIT, overdue=True)), NOW) == paused
    on = advance(pass_webhooks(paused), seen(asked(Answer.GO)), NOW)
    assert (on.phase, on.step_index, on.reason.code) == (Phase.PAUSED, 0, Code.AWAITING_APPROVAL)
    aborting = replace(of, on_inconclusive=OnInconclusive.ABORT)
    ended = advance(at_step(aborting), seen(asked(Answer.UNAVAILABLE, overdue=True)), NOW)
    assert (ended.phase, ended.reason.code, ended.portion.weight) == (Phase.ABORTED, Code.WEBHOOK_UNDECIDED, 0)


def test_one_before_the_step_that_a_person_lets_pass_begins_that_step_and_skips_none() -> None:
    of = Policy("asking", (Step(10), Step(50, webhooks=(BEFORE,)), Step(60)))
    held = advance(at_step(of), seen(), NOW)
    paused = advance(held, seen(asked(Answer.WAIT, "change", overdue=True, step_index=1)), NOW)
    assert (paused.phase, paused.step_index, paused.portion.weight) == (Phase.PAUSED, 1, 10)
    on = advance(pass_webhooks(paused), seen(asked(Answer.GO, "change", step_index=1)), NOW)
    assert (on.step_index, on.portion.weight) == (1, 50)


def test_one_that_was_paused_before_an_answer_came_says_so_and_begins_the_step_when_promoted() -> None:
    of = Policy("asking", (Step(10), Step(50, webhooks=(BEFORE,)), Step(60)))
    paused = replace(advance(at_step(of), seen(), NOW), phase=Phase.PAUSED)
    still = advance(paused, seen(asked(Answer.WAIT, "change", step_index=1)), NOW)
    assert (still.phase, still.portion.weight, still.reason.code) == (Phase.PAUSED, 10, Code.PAUSED_BY_WEBHOOK)
    assert "was paused before its webhook answered" in still.reason.message
    on = advance(pass_webhooks(still), seen(asked(Answer.GO, "change", step_index=1)), NOW)
    assert (on.step_index, on.portion.weight) == (1, 50)


def test_those_at_the_end_are_opened_once_those_at_the_beginning_said_go() -> None:
    step = Step(10, webhooks=(AFTER, BEFORE))
    assert to_ask(step, 0, []) == [BEFORE]
    assert to_ask(step, 0, [asked(Answer.WAIT, "change")]) == []
    assert to_ask(step, 0, [asked(Answer.GO, "change")]) == [AFTER]
    assert to_ask(step, 0, [asked(Answer.GO, "change"), asked(Answer.WAIT)]) == []


@given(
    answers=st.lists(st.sampled_from(Answer), min_size=2, max_size=2),
    overdue=st.lists(st.booleans(), min_size=2, max_size=2),
    verdict=st.sampled_from(Verdict),
    on_inconclusive=st.sampled_from(OnInconclusive),
)
def test_nothing_but_all_go_promotes_and_nothing_but_a_no_or_the_analysis_fails(
    answers: list[Answer], overdue: list[bool], verdict: Verdict, on_inconclusive: OnInconclusive
) -> None:
    of = replace(policy(AFTER, StepWebhook("load", URL)), on_inconclusive=on_inconclusive)
    said = [
        asked(answer, name, late and not answer.is_decided)
        for answer, name, late in zip(answers, ("tests", "load"), overdue, strict=True)
    ]
    after = advance(at_step(of), seen(*said, finding=Finding(verdict, "seen", 50, 450)), NOW)
    if after.step_index == 1:
        assert answers == [Answer.GO, Answer.GO]
    if after.phase is Phase.DEGRADED:
        assert Answer.NO in answers or verdict is Verdict.FAILED
    ruling, _ = rule(of.steps[0], 0, When.AFTER, said)
    assert (ruling is Ruling.NO) is (Answer.NO in answers)


def test_the_policy_file_is_read_and_written_back() -> None:
    webhooks = [{"name": "tests", "url": URL, "when": "before", "timeout": "5s", "deadline": "30m"}]
    read = parse_policy({"steps": [{"weight": 10, "webhooks": webhooks}]}, name="asking")
    assert read.steps[0].webhooks == (
        StepWebhook("tests", URL, When.BEFORE, timedelta(seconds=5), timedelta(minutes=30)),
    )
    assert parse_policy(written(read)) == read
    assert "webhooks" not in written(parse_policy({"steps": [{"weight": 10}]}, name="plain"))["steps"][0]  # type: ignore[index]


@pytest.mark.parametrize(
    ("webhook", "field", "why"),
    [
        pytest.param({"url": URL}, "name", "is missing", id="no name"),
        pytest.param({"name": "a", "url": "ci.example"}, "url", "expected http", id="no scheme"),
        pytest.param({"name": "a", "url": f"{URL}?token=x"}, "url", "belongs to the registered", id="a secret query"),
        pytest.param({"name": "a", "url": "https://u:p@ci.example/"}, "url", "without user", id="a password"),
        pytest.param({"name": "a", "url": "http://[bad/"}, "url", "expected http", id="no address"),
        pytest.param({"name": "a", "url": URL, "secret": "s"}, "secret", "never in a policy", id="a secret"),
        pytest.param({"name": "a", "url": URL, "timeout": "1m"}, "timeout", "given as wait", id="too patient"),
        pytest.param({"name": "a", "url": URL, "when": "later"}, "when", "before or after", id="another time"),
    ],
)
def test_a_webhook_that_cannot_be_asked_is_refused_by_its_field(webhook: dict[str, str], field: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why) as refused:
        parse_policy({"steps": [{"weight": 10, "webhooks": [webhook]}]}, name="asking")
    assert refused.value.field == f"steps[0].webhooks[0].{field}"


def test_two_webhooks_of_a_step_have_different_names() -> None:
    webhook = {"name": "a", "url": URL}
    with pytest.raises(InvalidInput, match="each with a name of its own"):
        parse_policy({"steps": [{"weight": 10, "webhooks": [webhook, webhook]}]}, name="asking")
