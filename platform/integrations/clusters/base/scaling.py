"""Scaling behavior: how fast a revision's replicas may follow its load, by the fields of Kubernetes' autoscaling/v2."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Unit(StrEnum):
    """Unit of a policy's value."""

    PODS = "Pods"
    PERCENT = "Percent"


class Selection(StrEnum):
    """Which of several policies applies: the one that allows most, the one that allows least; DISABLED allows none."""

    MAX = "Max"
    MIN = "Min"
    DISABLED = "Disabled"


@dataclass(frozen=True, slots=True)
class ScalingPolicy:
    """At most so many replicas, or percent of them, are added or taken away within `period_s` seconds."""

    unit: Unit
    value: int
    period_s: int


@dataclass(frozen=True, slots=True)
class ScalingRules:
    """How fast replicas are added, or taken away.

    Attributes:
        window_s: for how long a change must have been right; None is the default.
        policies: empty are the defaults.
        tolerance: share of the target by which a value may differ without a change; None is the default.
    """

    window_s: int | None = None
    select: Selection = Selection.MAX
    policies: tuple[ScalingPolicy, ...] = ()
    tolerance: float | None = None


@dataclass(frozen=True, slots=True)
class Behavior:
    """How fast replicas are added (`up`) and taken away (`down`)."""

    up: ScalingRules = field(default_factory=ScalingRules)
    down: ScalingRules = field(default_factory=ScalingRules)


def behavior_json(behavior: Behavior) -> dict[str, Any]:
    """Return it as autoscaling/v2 has it; defaults are left out."""
    both = {"scaleUp": _rules_json(behavior.up), "scaleDown": _rules_json(behavior.down)}
    return {name: rules for name, rules in both.items() if rules}


def behavior_from_json(value: Mapping[str, Any]) -> Behavior:
    """Parse the JSON of `behavior_json`."""
    return Behavior(_rules_from_json(value.get("scaleUp", {})), _rules_from_json(value.get("scaleDown", {})))


def _rules_from_json(value: Mapping[str, Any]) -> ScalingRules:
    policies = (
        ScalingPolicy(Unit(each["type"]), int(each["value"]), int(each["periodSeconds"]))
        for each in value.get("policies", ())
    )
    return ScalingRules(
        window_s=value.get("stabilizationWindowSeconds"),
        select=Selection(value.get("selectPolicy", Selection.MAX)),
        policies=tuple(policies),
        tolerance=value.get("tolerance"),
    )


def _rules_json(rules: ScalingRules) -> dict[str, Any]:
    said: dict[str, Any] = {
        "stabilizationWindowSeconds": rules.window_s,
        "selectPolicy": None if rules.select is Selection.MAX else rules.select.value,
        "policies": [
            {"type": each.unit.value, "value": each.value, "periodSeconds": each.period_s} for each in rules.policies
        ]
        or None,
        "tolerance": rules.tolerance,
    }
    return {name: value for name, value in said.items() if value is not None}
