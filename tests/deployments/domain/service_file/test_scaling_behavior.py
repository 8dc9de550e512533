"""How fast replicas may follow their load, as a service file says it."""

from typing import Any

import pytest

from common.errors import InvalidInput
from common.files.document import Document
from deployments.domain.service_file.scaling import parse_scaling, put_scaling
from integrations.clusters.base import (
    Behavior,
    ScalingPolicy,
    ScalingRules,
    Selection,
    Unit,
    behavior_from_json,
    behavior_json,
)

UP: dict[str, Any] = {
    "stabilizationWindowSeconds": 30,
    "selectPolicy": "Min",
    "policies": [
        {"type": "Pods", "value": 2, "periodSeconds": 60},
        {"type": "Percent", "value": 50, "periodSeconds": 15},
    ],
    "tolerance": 0.05,
}


def _parse(behavior: object, **more: Any) -> Behavior:
    predictor = {"maxReplicas": 5, "autoScaling": {"behavior": behavior}, **more}
    return parse_scaling(Document(predictor, "spec.predictor")).behavior


def test_it_is_read_written_and_stored_in_the_words_of_autoscaling_v2() -> None:
    behavior = _parse({"scaleUp": UP, "scaleDown": {"stabilizationWindowSeconds": 0, "selectPolicy": "Disabled"}})
    policies = (ScalingPolicy(Unit.PODS, 2, 60), ScalingPolicy(Unit.PERCENT, 50, 15))
    assert behavior == Behavior(ScalingRules(30, Selection.MIN, policies, 0.05), ScalingRules(0, Selection.DISABLED))
    assert behavior_json(behavior)["scaleUp"] == UP
    assert behavior_from_json(behavior_json(behavior)) == behavior

    scaling = parse_scaling(Document({"maxReplicas": 5, "autoScaling": {"behavior": {"scaleUp": UP}}}))
    written: dict[str, Any] = {}
    put_scaling(written, scaling)
    assert written["autoScaling"] == {"behavior": {"scaleUp": UP}}


def test_what_is_left_out_is_left_to_the_defaults() -> None:
    assert parse_scaling(Document({"maxReplicas": 5})).behavior == Behavior()
    assert _parse({"scaleDown": {}}) == Behavior()
    assert behavior_json(Behavior()) == {}
    assert behavior_from_json({}) == Behavior()
    written: dict[str, Any] = {"autoScaling": {"behavior": {}}}
    put_scaling(written, parse_scaling(Document({"maxReplicas": 5})))
    assert "autoScaling" not in written


@pytest.mark.parametrize(
    ("behavior", "field", "sentence"),
    [
        pytest.param({"scaleup": {}}, "scaleup", "it knows scaleDown, scaleUp", id="unknown direction"),
        pytest.param({"scaleUp": {"window": 3}}, "scaleUp.window", "is not a field", id="unknown rule"),
        pytest.param(
            {"scaleUp": {"stabilizationWindowSeconds": 3601}},
            "scaleUp.stabilizationWindowSeconds",
            "from 0 to 3600",
            id="more than an hour",
        ),
        pytest.param({"scaleDown": {"tolerance": 2}}, "scaleDown.tolerance", "from 0 to 1", id="tolerates all"),
        pytest.param({"scaleUp": {"selectPolicy": "All"}}, "scaleUp.selectPolicy", "Max or Min or", id="no selection"),
        pytest.param({"scaleUp": {"policies": []}}, "scaleUp.policies", "leave it out for the defaults", id="none"),
        pytest.param(
            {"scaleUp": {"policies": [{"value": 1, "periodSeconds": 1}]}},
            "scaleUp.policies[0].type",
            "is missing",
            id="of what",
        ),
        pytest.param(
            {"scaleUp": {"policies": [{"type": "Pods", "value": 0, "periodSeconds": 1}]}},
            "scaleUp.policies[0].value",
            "from 1",
            id="none at all",
        ),
        pytest.param(
            {"scaleUp": {"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}},
            "scaleUp.policies[0].periodSeconds",
            "from 1 to 1800",
            id="longer than half an hour",
        ),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(behavior: object, field: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as refused:
        _parse(behavior)
    assert refused.value.field == f"spec.predictor.autoScaling.behavior.{field}"


def test_metrics_are_said_elsewhere_and_what_does_not_scale_has_no_behavior() -> None:
    with pytest.raises(InvalidInput, match="scaleMetric and scaleTarget say what to scale on"):
        _parse({}, autoScaling={"behavior": {}, "metrics": []})
    with pytest.raises(InvalidInput, match=r"spec.predictor.autoScaling cannot be honoured with 5 replicas only"):
        _parse({"scaleUp": UP}, minReplicas=5)
