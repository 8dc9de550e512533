"""Scaling behavior of a service file (`spec.predictor.autoScaling.behavior`, autoscaling/v2's as in KServe). Pure.

Missing fields have the defaults of autoscaling/v2, on every cluster alike.
"""

from typing import Any

from common.files.document import Document
from integrations.clusters.base import Behavior, ScalingPolicy, ScalingRules, Selection, Unit, behavior_json

_LONGEST_WINDOW_S, _LONGEST_PERIOD_S = 3600, 1800  # autoscaling/v2: HPAScalingRules, HPAScalingPolicy
_MOST = 1_000_000
_MOST_POLICIES = 10
_FIELD = "autoScaling"
_INSTEAD = {"metrics": "spec.predictor.scaleMetric and scaleTarget say what to scale on"}


def parse_behavior(predictor: Document) -> Behavior:
    """Return how fast replicas may follow the load; raises InvalidInput with the field at fault."""
    scaling = predictor.optional(_FIELD)
    if scaling is None:
        return Behavior()
    behavior = scaling.document("behavior")
    result = Behavior(_rules(behavior, "scaleUp"), _rules(behavior, "scaleDown"))
    behavior.refuse_unknown()
    scaling.refuse_unknown(_INSTEAD)
    return result


def put_behavior(predictor: dict[str, Any], behavior: Behavior) -> None:
    """Write `behavior` into a service file's `spec.predictor`."""
    if said := behavior_json(behavior):
        predictor[_FIELD] = {"behavior": said}
    else:
        predictor.pop(_FIELD, None)


def _rules(behavior: Document, name: str) -> ScalingRules:
    rules = behavior.optional(name)
    if rules is None:
        return ScalingRules()
    result = ScalingRules(
        window_s=_optional(rules, "stabilizationWindowSeconds", _LONGEST_WINDOW_S),
        select=rules.choice("selectPolicy", Selection, Selection.MAX),
        policies=_policies(rules),
        tolerance=_tolerance(rules),
    )
    rules.refuse_unknown()
    return result


def _optional(rules: Document, name: str, maximum: int) -> int | None:
    return None if rules.raw(name, None) is None else rules.integer(name, minimum=0, maximum=maximum)


def _tolerance(rules: Document) -> float | None:
    return None if rules.raw("tolerance", None) is None else rules.number("tolerance", minimum=0, maximum=1)


def _policies(rules: Document) -> tuple[ScalingPolicy, ...]:
    if rules.raw("policies", None) is None:
        return ()
    found = rules.each("policies", _policy)
    if not 0 < len(found) <= _MOST_POLICIES and rules.is_sound("policies"):
        what = f"has {len(found)} entries; expected 1 to {_MOST_POLICIES}, or leave it out for the defaults"
        rules.fault("policies", what)
    return found


def _policy(policy: Document) -> ScalingPolicy:
    policy.raw("type")  # it has no default
    result = ScalingPolicy(
        unit=policy.choice("type", Unit, Unit.PODS),
        value=policy.integer("value", minimum=1, maximum=_MOST),
        period_s=policy.integer("periodSeconds", minimum=1, maximum=_LONGEST_PERIOD_S),
    )
    policy.refuse_unknown()
    return result
