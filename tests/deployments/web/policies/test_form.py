"""The form of a policy file: it says what the file says, and writes back no more than was changed."""

from typing import Any

import pytest
import yaml

from common.files.editor.text import digest_of
from deployments.domain.policy import parse_policy, policy_json
from deployments.web.policies.drawing import drawing_of
from deployments.web.policies.form import OFF, changed, done, form_of, has_comments

WHOLE: dict[str, Any] = yaml.safe_load(
    """
name: careful
alpha: 0.05
approval: {approvals: 2, fourEyes: true}
steps:
- weight: 10
  hold: 5m
  match: [{header: x-group, exact: beta}]
  analysis: {minRequests: 500, detect: {errorPercent: 9}}
- weight: 50
  pause: {approvals: 1, expires: 2h}
  analysis:
    maxSlowPercent: null
    metrics:
    - {name: age, query: 'max(age{revision="{{revision}}"})', max: 3, allowedPercent: 20}
- {weight: 75, pause: true}
deadline: 8h
"""
)


def values(document: dict[str, Any]) -> dict[str, str]:
    form = form_of(document)
    assert form is not None
    return {each.field.name: each.value for each in form.fields}


def test_the_form_says_what_the_file_says() -> None:
    said = values(WHOLE)
    assert said["steps.0.weight"] == "10"
    assert said["steps.0.analysis"] == "yes"
    assert (said["steps.1.pause"], said["steps.1.pause.expires"], said["steps.2.pause"]) == (
        "approvals",
        "2h",
        "person",
    )
    assert said["steps.1.analysis.maxSlowPercent"] == OFF
    assert said["steps.1.analysis.maxErrorIncreasePercent"] == ""
    assert said["steps.1.analysis.metrics.0.max"] == "3"
    assert (said["approval.approvals"], said["approval.fourEyes"], said["onInconclusive"]) == ("2", "yes", "")
    assert "steps.2.analysis.minRequests" not in said


def test_what_it_does_not_say_is_named_where_it_stands() -> None:
    form = form_of(WHOLE)
    assert form is not None
    assert form.head.unset == ("alpha",)
    assert form.steps[0].step.unset == ("match",)
    assert form.steps[0].analysis is not None
    assert form.steps[0].analysis.unset == ("detect",)
    assert form.steps[1].metrics[0].unset == ("allowedPercent",)


@pytest.mark.parametrize(
    "document",
    [
        pytest.param({"name": "a", "deadline": "9h", "steps": [{"weight": 10, "analysis": {}}]}, id="canary"),
        pytest.param({"name": "a", "strategy": "shadow", "steps": [{"weight": 10, "analysis": {}}]}, id="shadow"),
        pytest.param({"name": "a", "strategy": "blueGreen", "steps": [{"analysis": {}}]}, id="blue/green"),
    ],
)
def test_what_stands_in_an_empty_field_is_what_it_means(document: dict[str, Any]) -> None:
    form = form_of(document)
    assert form is not None
    empty = [each.field for each in form.fields if not each.value]
    usual = {field.name: field for field in empty if field.usual not in ("", "no limit")}
    assert {"onInconclusive", "scaleDownDelay", "steps.0.analysis.maxErrorPercent", "steps.0.hold"} <= usual.keys()
    for name, field in usual.items():
        value = next((value for value, label in field.choices if label == field.usual), field.usual)
        assert parse_policy(changed(document, {name: value})) == parse_policy(document), name
        assert not field.choices or value != field.usual or name == "strategy", "a choice that there is"


@pytest.mark.parametrize(
    "document", [pytest.param(WHOLE, id="as written"), pytest.param(policy_json(parse_policy(WHOLE)), id="as stored")]
)
def test_a_form_that_nobody_changed_changes_nothing(document: dict[str, Any]) -> None:
    assert changed(document, values(document)) == document


def test_one_field_is_another_and_all_else_stays() -> None:
    after = changed(WHOLE, {**values(WHOLE), "steps.0.hold": "10m", "steps.1.analysis.maxSlowPercent": "20"})
    expected = yaml.safe_load(yaml.safe_dump(WHOLE))
    expected["steps"][0]["hold"] = "10m"
    expected["steps"][1]["analysis"]["maxSlowPercent"] = 20
    assert after == expected
    assert WHOLE["steps"][0]["hold"] == "5m", "what was given is left alone"
    parse_policy(after)


@pytest.mark.parametrize(
    ("said", "at", "value"),
    [
        pytest.param({"steps.0.hold": ""}, ("steps", 0, "hold"), None, id="an empty field is taken out"),
        pytest.param({"steps.0.weight": "ten"}, ("steps", 0, "weight"), "ten", id="no number is left to be refused"),
        pytest.param({"steps.0.weight": "2.5"}, ("steps", 0, "weight"), 2.5, id="a part"),
        pytest.param({"steps.2.analysis": "yes"}, ("steps", 2, "analysis"), {}, id="an analysis"),
        pytest.param({"steps.0.analysis": ""}, ("steps", 0, "analysis"), None, id="none any more"),
        pytest.param({"steps.0.pause": "approvals"}, ("steps", 0, "pause"), {"approvals": 1}, id="approvals"),
        pytest.param({"steps.1.pause": "person"}, ("steps", 1, "pause"), True, id="a person"),
        pytest.param({"steps.2.pause": ""}, ("steps", 2, "pause"), None, id="goes on"),
        pytest.param({"approval": ""}, ("approval",), None, id="nobody is asked"),
        pytest.param({"approval.fourEyes": ""}, ("approval", "fourEyes"), None, id="anybody may"),
        pytest.param(
            {"steps.0.analysis.maxErrorIncreasePercent": "off"},
            ("steps", 0, "analysis", "maxErrorIncreasePercent"),
            None,
            id="switched off",
        ),
    ],
)
def test_what_fields_come_to(said: dict[str, str], at: tuple[str | int, ...], value: object) -> None:
    found: Any = changed(WHOLE, said)
    for part in at[:-1]:
        found = found[part]
    is_off = "off" in said.values()
    assert found.get(at[-1]) == value
    assert (at[-1] in found) == (value is not None or is_off)


def test_steps_and_measurements_come_and_go() -> None:
    after = done(WHOLE, "add")
    assert after["steps"][-1]["weight"] == 87
    after = done(after, "remove 0")
    assert [step["weight"] for step in after["steps"]] == [50, 75, 87]
    after = done(after, "measure 1")
    assert after["steps"][1]["analysis"]["metrics"][0]["name"] == "metric-1"
    after = done(done(after, "unmeasure 1 0"), "unmeasure 0 0")
    assert "metrics" not in after["steps"][0]["analysis"]
    for nowhere in ("remove 9", "measure 9", "unmeasure 9 9", "remove", "sing"):
        assert done(WHOLE, nowhere) == WHOLE
    assert done({"name": "new"}, "add")["steps"][0]["weight"] == 10


def test_another_strategy_has_other_fields() -> None:
    assert "steps.0.mirror" in values(WHOLE)
    shadow = values({"strategy": "shadow", "steps": [{"weight": 10}]})
    assert "steps.0.mirror" not in shadow
    assert "then" in shadow
    preview = form_of({"strategy": "blueGreen", "steps": [{"weight": 100}]})
    assert preview is not None
    assert not preview.may_add


@pytest.mark.parametrize("steps", [{"weight": 10}, ["ten"], 5])
def test_steps_that_no_form_shows(steps: object) -> None:
    assert form_of({"name": "x", "steps": steps}) is None
    assert changed({"name": "x", "steps": steps}, {"name": "y"}) == {"name": "x", "steps": steps}


def test_odd_values_are_shown_as_nothing_and_stay() -> None:
    odd = {"steps": [{"weight": [1], "analysis": {"metrics": "all", "minRequests": {"a": 1}}}], "approval": "me"}
    assert changed(odd, values(odd)) == odd
    form = form_of(odd)
    assert form is not None
    assert form.steps[0].analysis is not None
    assert "metrics" in form.steps[0].analysis.unset


def test_comments_are_seen_and_line_ends_do_not_count() -> None:
    assert has_comments("steps: [] # later\n")
    assert not has_comments("query: a#b\n")
    assert digest_of("a: 1\r\nb: 2\r\n") == digest_of("a: 1\nb: 2")


def test_a_gate_on_labels_has_its_fields_where_the_file_has_one_and_loses_nothing() -> None:
    quality = {"scorer": "accuracy", "maxWorse": 2, "slices": "region", "deadline": "48h"}
    document = {"name": "a", "steps": [{"weight": 10, "analysis": {"quality": quality}}]}
    form = form_of(document)
    assert form is not None
    assert form.steps[0].analysis is not None
    assert form.steps[0].analysis.unset == ("quality.slices",)
    said = values(document)
    assert (said["steps.0.analysis.quality.scorer"], said["steps.0.analysis.quality.maxWorse"]) == ("accuracy", "2")
    after = changed(document, {**said, "steps.0.analysis.quality.minLabels": "500", "steps.0.hold": "5m"})
    assert after["steps"][0]["analysis"]["quality"] == {**quality, "minLabels": 500}
    drawn = drawing_of(parse_policy(after, name="a"))
    assert drawn.longer == ("1 analysis", "1 gate on labels")
    assert drawn.warning == ""
