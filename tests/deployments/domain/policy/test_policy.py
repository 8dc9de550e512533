import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from common.errors import InvalidInput
from deployments.domain.policy import (
    DIRECT,
    Detect,
    Gate,
    Metric,
    OnDeadline,
    OnInconclusive,
    Policy,
    Quality,
    SlowLimit,
    Step,
    Strategy,
    Then,
    parse_policy,
    policy_json,
    stored_policy,
    uncompared,
)
from integrations.clusters.base import HeaderMatch, MatchKind, SessionAffinity

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
    "alpha": 0.001,
    "progressDeadline": "3m",
}


def test_a_policy_file_is_read_field_by_field() -> None:
    gate = Gate(200, 0.5, 2.0, 0.99, 5.0, timedelta(minutes=10), detect=Detect(4.5, 10.0))
    assert parse_policy(FILE) == Policy(
        name="careful",
        steps=(Step(10, timedelta(seconds=90), False, gate), Step(50, timedelta(0), True, None)),
        on_inconclusive=OnInconclusive.ABORT,
        scale_down_delay=timedelta(minutes=1),
        progress_deadline=timedelta(minutes=3),
        alpha=0.001,
    )


def test_throughput_absolute_time_and_metrics_are_read_and_written() -> None:
    metric = {"name": "queue", "query": "q{{interval}}", "max": 3}
    analysis = {"maxSlowerThan": {"ms": 250, "percent": 0.5}, "minThroughputPercent": 80, "metrics": [metric]}
    policy = parse_policy({"steps": [{"weight": 20, "analysis": analysis}]}, name="measured")
    gate = Gate(
        max_slower_than=SlowLimit(250.0, 0.5),
        min_throughput_percent=80.0,
        metrics=(Metric("queue", "q{{interval}}", maximum=3.0),),
    )
    assert policy.steps[0].gate == gate
    assert stored_policy(policy_json(policy)) == policy


def test_a_gate_on_quality_is_read_and_written() -> None:
    quality = {"scorer": "accuracy", "maxWorse": 2, "deadline": "48h", "slices": "region"}
    analysis = {"quality": quality, "detect": {"qualityWorse": 10}}
    policy = parse_policy(
        {"steps": [{"weight": 20, "analysis": analysis}], "analysis": {"quality": {**quality, "deadline": None}}},
        name="q",
    )
    [gate, behind] = policy.gates
    assert gate.quality == Quality("accuracy", 2.0, 200, timedelta(days=2), "region")
    assert (gate.deadline, gate.quality_deadline) == (timedelta(minutes=5), timedelta(days=2))
    assert (gate.detect.quality_worse, behind.detect.quality_worse) == (10.0, 6.0)
    assert behind.quality == Quality("accuracy", 2.0, slices="region")
    assert behind.quality_deadline == behind.deadline
    assert stored_policy(policy_json(policy)) == policy
    assert uncompared(policy) == ""


@pytest.mark.parametrize(
    ("analysis", "field"),
    [
        pytest.param({"quality": {"maxWorse": 2}}, "quality.scorer", id="no scorer"),
        pytest.param({"quality": {"scorer": "a", "maxWorse": -1}}, "quality.maxWorse", id="better than stable"),
        pytest.param({"quality": {"scorer": "a", "maxWorse": 1, "minLabels": 0}}, "quality.minLabels", id="no labels"),
        pytest.param({"quality": {"scorer": "a", "maxWorse": 1, "slices": "a b"}}, "quality.slices", id="no parameter"),
        pytest.param({"quality": {"scorer": "a", "maxWorse": 1, "x": 1}}, "quality.x", id="unknown of quality"),
        pytest.param(
            {"quality": {"scorer": "a", "maxWorse": 4}, "detect": {"qualityWorse": 4}},
            "detect.qualityWorse",
            id="within the limit",
        ),
        pytest.param({"maxSlowerThan": {"ms": 20_000, "percent": 1}}, "maxSlowerThan.ms", id="beyond the histograms"),
        pytest.param({"maxSlowerThan": {"ms": 200}}, "maxSlowerThan.percent", id="no share"),
        pytest.param({"maxSlowerThan": {"ms": 2, "percent": 1, "p": 9}}, "maxSlowerThan.p", id="unknown"),
        pytest.param({"minThroughputPercent": 0}, "minThroughputPercent", id="no throughput at all"),
        pytest.param({"metrics": [{"name": "x", "query": "y"}]}, "metrics[0].name", id="no limit"),
    ],
)
def test_a_wrong_measurement_is_refused_by_its_dotted_name(analysis: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        parse_policy({"steps": [{"weight": 20, "analysis": analysis}]}, name="measured")
    assert raised.value.field == f"steps[0].analysis.{field}"


def test_what_is_left_out_has_the_documented_defaults() -> None:
    policy = parse_policy({"steps": [{"weight": 20, "analysis": {}}]}, name="plain")
    assert policy == Policy("plain", (Step(20, gate=Gate()),))
    assert policy.scale_down_delay == timedelta(seconds=30)


PROGRESSIVE = {
    "name": "progressive",
    "steps": [
        {"mirror": 20, "hold": "1m"},
        {"mirror": 100},
        {"match": [{"header": "X-Group", "anyOf": ["beta", "staff"]}, {"header": "x-region", "prefix": "eu-"}]},
        {"match": [{"header": "x-group", "exact": "beta"}], "weight": 10},
        {"weight": 50},
    ],
    "sessionAffinity": {"header": "x-session"},
    "analysis": {"maxErrorPercent": 2, "maxSlowPercent": None},
    "deadline": "2h",
    "onDeadline": "pause",
}


def test_a_canary_begins_with_copies_and_a_group() -> None:
    policy = parse_policy(PROGRESSIVE)
    staff = (
        HeaderMatch("x-group", MatchKind.ANY_OF, ("beta", "staff")),
        HeaderMatch("x-region", MatchKind.PREFIX, ("eu-",)),
    )
    assert policy.steps == (
        Step(mirror=20, hold=timedelta(minutes=1)),
        Step(mirror=100),
        Step(match=staff),
        Step(10, match=(HeaderMatch("x-group", MatchKind.EXACT, ("beta",)),)),
        Step(50),
    )
    assert policy.affinity == SessionAffinity("", header="x-session")
    assert policy.background is not None
    assert (policy.background.max_error_percent, policy.background.max_slow_percent) == (2, None)
    assert (policy.deadline, policy.on_deadline) == (timedelta(hours=2), OnDeadline.PAUSE)
    by_cookie = parse_policy({**PROGRESSIVE, "sessionAffinity": {"cookie": {"name": "session"}}}).affinity
    assert by_cookie == SessionAffinity("", cookie="session", cookie_ttl_s=3600)


def _steps(*steps: object, **more: object) -> dict[str, object]:
    return {"name": "p", "steps": list(steps), **more}


def _matching(**header: object) -> dict[str, object]:
    return _steps({"match": [header]})


GROUP = [{"header": "x-group", "exact": "beta"}]


@pytest.mark.parametrize(
    ("document", "field", "sentence"),
    [
        pytest.param(_steps({"hold": "1m"}), "steps[0].weight", "say what the canary gets", id="a step of nothing"),
        pytest.param(
            _steps({"mirror": 5, "weight": 5}),
            "steps[0].mirror",
            "has mirror and weight; a step",
            id="copies, weight",
        ),
        pytest.param(
            _steps({"mirror": 5, "match": GROUP}), "steps[0].mirror", "has mirror and match", id="copies and a group"
        ),
        pytest.param(_steps({"mirror": 0}), "steps[0].mirror", "a whole number from 1 to 100", id="copies of nothing"),
        pytest.param(
            _steps({"weight": 5}, {"mirror": 5}), "steps[1].mirror", "put the copies first", id="copies after a weight"
        ),
        pytest.param(
            _steps({"match": GROUP}, {"mirror": 5}),
            "steps[1].mirror",
            "put the copies first",
            id="late copies",
        ),
        pytest.param(
            _steps({"mirror": 50}, {"mirror": 20}), "steps[1].mirror", "is 20 after 50; the shares", id="falling copies"
        ),
        pytest.param(
            _steps({"weight": 5}, {"match": GROUP}),
            "steps[1].match",
            "clients would lose the canary",
            id="late group",
        ),
        pytest.param(
            _steps({"weight": 100, "match": GROUP}), "steps[0].match", "remove the match", id="a group beside everybody"
        ),
        pytest.param(_steps({"match": []}), "steps[0].match", "which would be everybody", id="an empty group"),
        pytest.param(_steps({"match": GROUP[0]}), "steps[0].match", "expected a list", id="a group that is no list"),
        pytest.param(_matching(exact="beta"), "steps[0].match[0].header", "header is missing", id="no header"),
        pytest.param(_matching(header="x-group"), "steps[0].match[0].header", "say one of exact", id="no value"),
        pytest.param(
            _matching(header="x", exact="a", prefix="a"), "steps[0].match[0].header", "exact and prefix", id="two ways"
        ),
        pytest.param(
            _matching(header="x y", exact="a"), "steps[0].match[0].header", "such as x-group", id="no header's name"
        ),
        pytest.param(
            _matching(header=":path", exact="a"), "steps[0].match[0].header", "such as x-group", id="a pseudo header"
        ),
        pytest.param(_matching(header="Host", exact="a"), "steps[0].match[0].header", "such as x-group", id="the host"),
        pytest.param(
            _matching(header="x", exact="a\nb"), "steps[0].match[0].exact", "printable ASCII", id="a line break"
        ),
        pytest.param(_matching(header="x", exact=" a"), "steps[0].match[0].exact", "without spaces around", id="space"),
        pytest.param(_matching(header="x", anyOf=[]), "steps[0].match[0].anyOf", "no list of texts", id="any of none"),
        pytest.param(_matching(header="x", anyOf=[1]), "steps[0].match[0].anyOf", "no list of texts", id="a number"),
        pytest.param(
            _matching(header="x", anyOf=["a"] * 21), "steps[0].match[0].anyOf", "at most 20", id="a long list of values"
        ),
        pytest.param(
            _matching(header="x", regex="a+"), "steps[0].match[0].header", "exact, prefix or anyOf", id="a pattern"
        ),
        pytest.param(
            _steps({"weight": 5, "mirror": 5}, strategy="shadow"),
            "steps[0].mirror",
            "the share of a shadow's step is its weight",
            id="a shadow's mirror",
        ),
        pytest.param(
            _steps({"weight": 5, "match": GROUP}, strategy="shadow"),
            "steps[0].match",
            "of all requests",
            id="group",
        ),
        pytest.param(
            _steps({"match": GROUP}, strategy="blueGreen"), "steps[0].match", "preview address", id="a preview's group"
        ),
        pytest.param(
            _steps({"weight": 5}, strategy="shadow", sessionAffinity={"header": "x"}),
            "sessionAffinity",
            "only a canary divides",
            id="a shadow's sessions",
        ),
        pytest.param(
            _steps({"weight": 5}, sessionAffinity={}),
            "sessionAffinity.header",
            "known by one of them",
            id="no way",
        ),
        pytest.param(
            _steps({"weight": 5}, sessionAffinity={"header": "x", "cookie": {"name": "y"}}),
            "sessionAffinity.header",
            "are both there",
            id="header and cookie",
        ),
        pytest.param(
            _steps({"weight": 5}, analysis={"deadline": "5m"}),
            "analysis.deadline",
            "as long as the rollout",
            id="behind",
        ),
        pytest.param(_steps({"weight": 5}, analysis={"p99": 1}), "analysis.p99", "is not a field", id="unknown behind"),
        pytest.param(_steps({"weight": 5}, deadline="0s"), "deadline", "above 0", id="no time at all"),
        pytest.param(_steps({"weight": 5}, onDeadline="abort"), "onDeadline", "without a deadline", id="what for"),
        pytest.param(_steps({"weight": 5}, deadline="1h", onDeadline="go"), "onDeadline", "pause or abort", id="go"),
        pytest.param(
            _steps({"weight": 5, "hold": "40m"}, {"weight": 9, "hold": "20m"}, deadline="1h"),
            "deadline",
            "the holds of the steps alone take 1h",
            id="shorter than its holds",
        ),
        pytest.param(
            _steps({"weight": 5}, sessionAffinity={"cookie": {"name": "a=b"}}),
            "sessionAffinity.cookie.name",
            "expected letters",
            id="a cookie's name",
        ),
        pytest.param(
            _steps({"weight": 5}, sessionAffinity={"cookie": {"name": "a", "ttl": "1500ms"}}),
            "sessionAffinity.cookie.ttl",
            "whole seconds",
            id="a cookie for a second and a half",
        ),
    ],
)
def test_what_does_not_fit_together_is_refused_in_one_sentence(
    document: dict[str, object], field: str, sentence: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_policy(document)
    assert sentence in caught.value.message
    assert caught.value.field == field
    assert "\n" not in caught.value.message


def test_the_two_comparisons_can_be_switched_off_with_null() -> None:
    analysis = {"maxErrorIncreasePercent": None, "maxSlowPercent": None}
    gate = parse_policy({"steps": [{"weight": 20, "analysis": analysis}]}, name="plain").steps[0].gate
    assert gate == Gate(max_error_increase_percent=None, max_slow_percent=None, detect=Detect(5.0, None))


@pytest.mark.parametrize(
    ("analysis", "detect"),
    [
        pytest.param({}, Detect(5.0, 30.0), id="from the default limits"),
        pytest.param({"maxErrorPercent": 0.1}, Detect(4.1, 30.0), id="a strict limit"),
        pytest.param({"maxErrorPercent": 100, "maxSlowPercent": 60}, Detect(100.0, 100.0), id="no more than all"),
        pytest.param({"detect": {"errorPercent": 2}}, Detect(2.0, 30.0), id="stated in part"),
    ],
)
def test_the_regression_that_is_to_be_found_follows_from_the_limits_where_it_is_not_stated(
    analysis: dict[str, object], detect: Detect
) -> None:
    policy = parse_policy({"steps": [{"weight": 20, "analysis": analysis}]}, name="plain")
    gate = policy.steps[0].gate
    assert gate is not None
    assert gate.detect == detect
    assert parse_policy(policy_json(policy)) == policy


@pytest.mark.parametrize(
    ("analysis", "complaint"),
    [
        pytest.param(
            {"detect": {"errorPercent": 1}},
            "steps[0].analysis.detect.errorPercent is 1, which is within the limit of 1; state a regression beyond the "
            "limit",
            id="errors within the limit",
        ),
        pytest.param({"detect": {"slowPercent": 15}}, "steps[0].analysis.detect.slowPercent is 15", id="slow ones"),
        pytest.param(
            {"maxSlowPercent": None, "detect": {"slowPercent": 50}},
            "steps[0].analysis.detect.slowPercent",
            id="slow ones where latency is not gated",
        ),
        pytest.param({"detect": {"errors": 5}}, "steps[0].analysis.detect.errors", id="another word"),
    ],
)
def test_a_regression_that_means_nothing_is_refused(analysis: dict[str, object], complaint: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(complaint)):
        parse_policy({"steps": [{"weight": 20, "analysis": analysis}]}, name="plain")


@pytest.mark.parametrize("alpha", [0, 0.5, -1, "1 %"])
def test_an_alpha_that_promises_nothing_is_refused(alpha: object) -> None:
    with pytest.raises(InvalidInput, match="alpha"):
        parse_policy({"alpha": alpha, "steps": [{"weight": 20}]}, name="plain")


def test_a_shadow_waits_at_its_end_unless_the_file_says_what_follows() -> None:
    document = {"strategy": "shadow", "steps": [{"weight": 5}, {"weight": 100}]}
    shadow = Policy("s", (Step(mirror=5), Step(mirror=100)), strategy=Strategy.SHADOW, then=Then.PAUSE)
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
        parse_policy(PROGRESSIVE),
        parse_policy({**PROGRESSIVE, "sessionAffinity": {"cookie": {"name": "s", "ttl": "90m"}}}),
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


def test_all_faults_of_a_file_are_named_at_once() -> None:
    gate = {"maxErorPercent": 1, "deadline": "soon", "metrics": [{"name": "P99", "query": "up{", "max": 1}]}
    webhooks = [{"name": "ci", "url": "ftp://ci"}]
    steps = [{"weight": 120, "analysis": gate}, {"hold": "1m", "match": [{"header": "host", "exact": " x"}]}, 7]
    file = {
        "name": "careful",
        "steps": [*steps, {"weight": 50, "webhooks": webhooks}],
        "scaleDownDelay": 30,
        "approvals": 2,
    }
    with pytest.raises(InvalidInput) as refusal:
        parse_policy(file)
    assert refusal.value.field == "steps[0].analysis.deadline"
    assert refusal.value.message.startswith("the policy file has 11 faults; the first: steps[0].analysis.deadline: ")
    assert {line.split(" ")[0].rstrip(":") for line in refusal.value.details} == {
        "steps[0].weight",
        "steps[0].analysis.deadline",
        "steps[0].analysis.maxErorPercent",
        "steps[0].analysis.metrics[0].name",
        "steps[0].analysis.metrics[0].query",
        "steps[1].match[0].header",
        "steps[1].match[0].exact",
        "steps[2]",
        "steps[3].webhooks[0].url",
        "scaleDownDelay",
        "approvals",
    }


def test_rules_about_several_fields_are_all_checked_where_each_is_right() -> None:
    file = {
        "name": "a",
        "steps": [{"weight": 20, "hold": "2m"}, {"weight": 10}],
        "deadline": "1m",
        "onDeadline": "pause",
    }
    with pytest.raises(InvalidInput) as refusal:
        parse_policy(file)
    assert refusal.value.details == (
        "steps[1].weight is 10 after 20; weights must rise from step to step",
        "deadline is 1m, but the holds of the steps alone take 2m; allow more",
    )


def test_a_misspelt_strategy_is_the_only_fault_of_a_shadow() -> None:
    with pytest.raises(InvalidInput, match="strategy is 'shadwo'") as refusal:
        parse_policy({"name": "a", "strategy": "shadwo", "then": "end", "steps": [{"weight": 10}]})
    assert refusal.value.details == ()


def test_in_the_background_labels_have_no_deadline() -> None:
    background = {"quality": {"scorer": "accuracy", "maxWorse": 2, "deadline": "1h"}}
    with pytest.raises(InvalidInput) as raised:
        parse_policy({"steps": [{"weight": 20}], "analysis": background}, name="q")
    assert raised.value.field == "analysis.quality.deadline"
