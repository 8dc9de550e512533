from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.policy import (
    DIRECT,
    Gate,
    OnInconclusive,
    Policy,
    Step,
    Strategy,
    Then,
    parse_policy,
    policy_json,
    stored_policy,
)

FILE: dict[str, Any] = {
    "name": "careful",
    "strategy": "canary",
    "steps": [
        {
            "weight": 10,
            "hold": "1m30s",
            "analysis": {
                "minRequests": 200,
                "maxErrorPercent": 0.5,
                "maxErrorIncreasePercent": 2,
                "latencyQuantile": 0.99,
                "maxSlowPercent": 5,
                "deadline": "10m",
            },
        },
        {"weight": 50, "pause": True},
    ],
    "onInconclusive": "abort",
    "scaleDownDelay": "1m",
    "progressDeadline": "3m",
}


def test_a_policy_file_is_read_field_by_field() -> None:
    gate = Gate(200, 0.5, 2.0, 0.99, 5.0, timedelta(minutes=10))
    assert parse_policy(FILE) == Policy(
        name="careful",
        steps=(Step(10, timedelta(seconds=90), False, gate), Step(50, timedelta(0), True, None)),
        on_inconclusive=OnInconclusive.ABORT,
        scale_down_delay=timedelta(minutes=1),
        progress_deadline=timedelta(minutes=3),
    )


def test_what_is_left_out_has_the_documented_defaults() -> None:
    policy = parse_policy({"steps": [{"weight": 20, "analysis": {}}]}, name="plain")
    assert policy == Policy("plain", (Step(20, gate=Gate()),))
    assert policy.scale_down_delay == timedelta(seconds=30)


def test_the_two_comparisons_can_be_switched_off_with_null() -> None:
    analysis = {"maxErrorIncreasePercent": None, "maxSlowPercent": None}
    gate = parse_policy({"steps": [{"weight": 20, "analysis": analysis}]}, name="plain").steps[0].gate
    assert gate == Gate(max_error_increase_percent=None, max_slow_percent=None)


def test_a_shadow_waits_at_its_end_unless_the_file_says_what_follows() -> None:
    document = {"strategy": "shadow", "steps": [{"weight": 5}, {"weight": 100}]}
    shadow = Policy("s", (Step(5), Step(100)), strategy=Strategy.SHADOW, then=Then.PAUSE)
    assert parse_policy(document, name="s") == shadow
    assert parse_policy({**document, "then": "end"}, name="s") == replace(shadow, then=Then.END)
    assert "then" not in policy_json(parse_policy(FILE))


@pytest.mark.parametrize(
    "policy",
    [
        parse_policy(FILE),
        parse_policy({"steps": [{"weight": 1}]}, name="a"),
        *(
            parse_policy({"strategy": "shadow", "steps": [{"weight": 1}], "then": then}, name="s")
            for then in ("pause", "promote", "end")
        ),
        DIRECT,
    ],
)
def test_a_stored_policy_is_read_back_equal(policy: Policy) -> None:
    assert stored_policy(policy_json(policy)) == policy


def _with(**changed: object) -> dict[str, object]:
    return {**FILE, **changed}


def _step(**changed: object) -> dict[str, object]:
    return _with(steps=[{"weight": 10, **changed}])


@pytest.mark.parametrize(
    ("document", "field", "sentence"),
    [
        pytest.param([], None, "the policy file is a list; expected an object", id="a list"),
        pytest.param({"steps": [{"weight": 1}]}, "name", "name is missing", id="no name"),
        pytest.param(_with(name="Careful"), "name", "expected a DNS label", id="a name that is no DNS label"),
        pytest.param(
            _with(strategy="blueGreen"),
            "steps",
            "a blue/green has exactly one step, of weight 100",
            id="blue/green steps",
        ),
        pytest.param(_with(strategy="blueGreen", steps=[]), "steps", "has exactly one step", id="blue/green, no step"),
        pytest.param(_with(then="end"), "then", "then is not a field", id="a canary with a shadow's field"),
        pytest.param(
            _with(strategy="shadow", then="stop"), "then", "expected pause or promote or end", id="an unknown end"
        ),
        pytest.param(_with(strategy="shadow", steps=[]), "steps", "a shadow needs at least one step", id="no shares"),
        pytest.param(_with(strategy="all"), "strategy", "strategy is 'all'; expected canary", id="unknown strategy"),
        pytest.param(_with(steps=[]), "steps", "a canary needs at least one step", id="no steps"),
        pytest.param(_with(steps="10"), "steps", "steps is '10'; expected a list", id="steps that are no list"),
        pytest.param(_with(steps=[10]), "steps[0]", "steps[0] is a whole number; expected an object", id="bare weight"),
        pytest.param(
            _with(steps=[{"weight": 10}, {"weight": 10}]), "steps[1].weight", "weights must rise", id="equal weights"
        ),
        pytest.param(
            _with(steps=[{"weight": 20}, {"weight": 10}]), "steps[1].weight", "is 10 after 20", id="falling weights"
        ),
        pytest.param(
            _with(steps=[{"weight": 100}, {"weight": 100}]), "steps[1]", "after a step with weight 100", id="after 100"
        ),
        pytest.param(_step(weight=0), "steps[0].weight", "a whole number from 1 to 100", id="weight 0"),
        pytest.param(_step(weight=101), "steps[0].weight", "is 101; expected", id="weight above 100"),
        pytest.param(_step(weight=True), "steps[0].weight", "expected a whole number", id="a truth value as weight"),
        pytest.param(_step(weight=1.5), "steps[0].weight", "is 1.5; expected a whole number", id="a broken weight"),
        pytest.param(_step(hold="soon"), "steps[0].hold", "steps[0].hold: 'soon' is no duration", id="bad duration"),
        pytest.param(_step(hold=10), "steps[0].hold", "expected a duration such as 10s", id="duration without unit"),
        pytest.param(_step(hold="9000h"), "steps[0].hold", "up to a year", id="a hold of more than a year"),
        pytest.param(_step(pause="yes"), "steps[0].pause", "expected true or false", id="pause that is no truth value"),
        pytest.param(
            _step(wieght=3), "steps[0].wieght", "steps[0].wieght is not a field", id="unknown field of a step"
        ),
        pytest.param(_with(stepz=[]), "stepz", "stepz is not a field that Fairlead can honour", id="unknown field"),
        pytest.param(_with(onInconclusive="go"), "onInconclusive", "expected pause or abort", id="onInconclusive"),
        pytest.param(_with(progressDeadline="0s"), "progressDeadline", "above 0", id="no time to start"),
        pytest.param(
            _step(analysis={"minRequests": 0}), "steps[0].analysis.minRequests", "from 1", id="no request needed"
        ),
        pytest.param(
            _step(analysis={"maxErrorPercent": float("nan")}), "steps[0].analysis.maxErrorPercent", "a number", id="nan"
        ),
        pytest.param(
            _step(analysis={"p99": 3}), "steps[0].analysis.p99", "steps[0].analysis.p99 is not", id="unknown metric"
        ),
        pytest.param(
            _step(analysis={"latencyQuantile": 0.95, "maxSlowPercent": 4}),
            "steps[0].analysis.maxSlowPercent",
            "5 % of stable's own requests are slower",
            id="fewer slow requests than stable itself has",
        ),
    ],
)
def test_a_wrong_file_is_refused_in_one_sentence_that_names_the_field(
    document: object, field: str | None, sentence: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_policy(document)
    assert sentence in caught.value.message
    assert caught.value.field == field
    assert "\n" not in caught.value.message


def test_a_file_put_under_another_name_is_refused() -> None:
    with pytest.raises(InvalidInput, match="name is 'careful', but the policy is put as 'bold'"):
        parse_policy(FILE, name="bold")


def test_a_blue_green_file_has_one_step_whose_weight_may_be_left_out() -> None:
    step = {"hold": "10s", "pause": True, "analysis": {"minRequests": 50}}
    policy = parse_policy({"name": "switch", "strategy": "blueGreen", "steps": [step], "scaleDownDelay": "1h"})
    assert policy.strategy is Strategy.BLUE_GREEN
    assert [(each.weight, each.pause) for each in policy.steps] == [(100, True)]
    assert policy.scale_down_delay == timedelta(hours=1)
    assert stored_policy(policy_json(policy)) == policy
    assert parse_policy({"name": "switch", "strategy": "blueGreen", "steps": [{"weight": 100}]}).steps[0].weight == 100
