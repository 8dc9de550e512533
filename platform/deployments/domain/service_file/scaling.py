"""Scaling fields of a service file (KServe's): replicas, metric, target and behavior. Pure.

Missing fields of the behavior have the defaults of autoscaling/v2, on every cluster alike.
"""

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from common.files.document import Document
from integrations.clusters.base import Behavior, ScalingPolicy, ScalingRules, Selection, Unit, behavior_json

MAX_REPLICAS = 100
MAX_CONCURRENCY = 1000
DEFAULT_CONCURRENCY = 10.0
DEFAULT_QUEUE_MS = 50.0
DEFAULT_CPU_PERCENT = 80.0  # KServe's default target of CPU
# Knative: autoscaling, target utilization; a replica at its hard limit already queues requests.
_UTILIZATION = 0.7
_NAMED = re.compile(r"pods/[A-Za-z_:][A-Za-z0-9_:]{0,94}")
_MEMORY = "a model takes its memory when it is loaded, whatever comes in"


class ScaleMetric(StrEnum):
    """The scaling metric of a replica; KServe's names, and the queue's time by the name of its metric.

    CONCURRENCY: requests accepted and not yet answered. RPS: requests a second. QUEUE_TIME: milliseconds that a request
    waited before its model ran. CPU: percent of the CPU that a replica requests, as the cluster measures it.
    """

    CONCURRENCY = "concurrency"
    RPS = "rps"
    QUEUE_TIME = "avg_time_queue_ms"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Scaling:
    """The range of replicas of a revision, and the target of each.

    Attributes:
        metric: what to scale on, a ScaleMetric or `pods/<name>` for a metric of pods that the cluster has; None watches
            concurrency and queue time, whichever asks for more.
        target: the value of `metric` per replica, of concurrency where that is None; None is the default.
        container_concurrency: the limit of concurrent requests in a replica, further ones wait; 0 is no limit.
        behavior: how fast the number may change.

    With `min_replicas` 0 a quiet revision may have none (`autoscaling.scale_to_zero`); all else counts with `least`.
    """

    min_replicas: int
    max_replicas: int
    metric: str | None = None
    target: float | None = None
    container_concurrency: int = 0
    behavior: Behavior = field(default_factory=Behavior)

    @property
    def least(self) -> int:
        """Return the least number of replicas of a revision that is awake."""
        return max(1, self.min_replicas)

    @property
    def may_sleep(self) -> bool:
        """Return whether it may have no replicas."""
        return self.min_replicas == 0

    @property
    def is_automatic(self) -> bool:
        """Return whether the number of replicas follows the load."""
        return self.min_replicas < self.max_replicas

    @property
    def is_measured_by_cluster(self) -> bool:
        """Return whether only the cluster knows the metric, which no replica reports."""
        return self.metric is not None and self.metric not in _REPORTED

    @property
    def targets(self) -> dict[str, float]:
        """Return the target of each watched metric."""
        limit = self.container_concurrency
        concurrency = max(1.0, limit * _UTILIZATION) if limit else DEFAULT_CONCURRENCY
        watched: dict[str, float] = {ScaleMetric.CONCURRENCY: concurrency, ScaleMetric.QUEUE_TIME: DEFAULT_QUEUE_MS}
        if self.metric is None and self.target is None:
            return watched
        defaults = {**watched, ScaleMetric.CPU: DEFAULT_CPU_PERCENT}
        metric = self.metric or ScaleMetric.CONCURRENCY
        return {metric: self.target if self.target is not None else defaults[metric]}

    def within(self, replicas: int) -> int:
        """Return the nearest allowed number of replicas."""
        return max(self.least, min(self.max_replicas, replicas))


_REPORTED = (ScaleMetric.CONCURRENCY, ScaleMetric.RPS, ScaleMetric.QUEUE_TIME)
"""Metrics that replicas report themselves."""
_DEFAULTED = (ScaleMetric.CONCURRENCY, ScaleMetric.QUEUE_TIME, ScaleMetric.CPU)


def parse_scaling(predictor: Document) -> Scaling:
    """Return the scaling of `spec.predictor`; raises InvalidInput with the field at fault."""
    minimum = predictor.integer("minReplicas", minimum=0, maximum=MAX_REPLICAS, default=1)
    maximum = predictor.integer("maxReplicas", minimum=1, maximum=MAX_REPLICAS, default=max(1, minimum))
    if maximum < minimum and predictor.is_sound("minReplicas"):
        predictor.fault("maxReplicas", f"is {maximum}, less than minReplicas, which is {minimum}")
    metric = _metric(predictor)
    target = _target(predictor, metric)
    behavior = parse_behavior(predictor)
    are_counts_sound = predictor.is_sound("minReplicas") and predictor.is_sound("maxReplicas")
    for name in ("scaleMetric", "scaleTarget", "autoScaling"):
        if predictor.raw(name, None) is not None and maximum == minimum and are_counts_sound:
            predictor.fault(name, f"cannot be honoured with {maximum} replicas only; raise maxReplicas")
    if metric is not None and metric not in _DEFAULTED and target is None:
        predictor.fault("scaleTarget", f"is missing; say how much {metric} a replica should have")
    return Scaling(
        min_replicas=minimum,
        max_replicas=maximum,
        metric=metric,
        target=target,
        container_concurrency=predictor.integer("containerConcurrency", minimum=0, maximum=MAX_CONCURRENCY, default=0),
        behavior=behavior,
    )


def put_scaling(predictor: dict[str, Any], scaling: Scaling | None) -> None:
    """Write `scaling` into a service file's `spec.predictor`; None removes it."""
    fields: dict[str, Any] = dict.fromkeys(
        ("minReplicas", "maxReplicas", "scaleMetric", "scaleTarget", "containerConcurrency")
    )
    if scaling is not None:
        fields = {
            "minReplicas": scaling.min_replicas,
            "maxReplicas": scaling.max_replicas,
            "scaleMetric": None if scaling.metric is None else str(scaling.metric),
            "scaleTarget": scaling.target,
            "containerConcurrency": scaling.container_concurrency or None,
        }
    for name, value in fields.items():
        if value is None:
            predictor.pop(name, None)
        else:
            predictor[name] = value
    put_behavior(predictor, Behavior() if scaling is None else scaling.behavior)


def _metric(predictor: Document) -> str | None:
    found = predictor.raw("scaleMetric", None)
    if found is None or (isinstance(found, str) and _NAMED.fullmatch(found)):
        return found
    choices = ", ".join(ScaleMetric)
    if found == "memory":
        predictor.fault("scaleMetric", f"is 'memory', which does not measure load: {_MEMORY}; use {choices}")
        return None
    if found not in list(ScaleMetric):
        what = f"is {str(found)[:60]!r}; expected {choices}, or pods/NAME for a metric of pods that the cluster has"
        predictor.fault("scaleMetric", what)
        return None
    return ScaleMetric(found)


def _target(predictor: Document, metric: str | None) -> float | None:
    if predictor.raw("scaleTarget", None) is None:
        return None
    if metric == ScaleMetric.CPU:
        return predictor.integer("scaleTarget", minimum=1, maximum=100)
    return predictor.number("scaleTarget", minimum=0.001, maximum=1e9)


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
