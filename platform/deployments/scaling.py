"""What a service file says of replicas and load: KServe's fields, as a value. Pure."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from common.errors import InvalidInput
from deployments.document import Document

MAX_REPLICAS = 100
MAX_CONCURRENCY = 1000
DEFAULT_CONCURRENCY = 10.0
DEFAULT_QUEUE_MS = 50.0
# Knative: autoscaling, target utilization; a replica at its hard limit has begun to make requests wait.
_UTILIZATION = 0.7
_CANNOT = {
    "cpu": "a replica waits for the CPU or for its model, and only the queue shows both",
    "memory": "a model takes its memory when it is loaded, whatever comes in",
}


class ScaleMetric(StrEnum):
    """What is measured of each replica; KServe's names, and the queue's time by the name it has as a metric.

    CONCURRENCY: requests accepted and not yet answered. RPS: requests a second. QUEUE_TIME: milliseconds that a request
    waited before its model ran.
    """

    CONCURRENCY = "concurrency"
    RPS = "rps"
    QUEUE_TIME = "avg_time_queue_ms"


@dataclass(frozen=True, slots=True)
class Scaling:
    """How many replicas a revision may have, and how much each should do.

    Attributes:
        metric: what to scale on; None watches concurrency and queue time, whichever asks for more.
        target: what each replica should have of `metric`, of concurrency where that is None; None is the default.
        container_concurrency: so many requests at once in a replica, further ones wait; 0 is no limit.
    """

    min_replicas: int
    max_replicas: int
    metric: ScaleMetric | None = None
    target: float | None = None
    container_concurrency: int = 0

    @property
    def is_automatic(self) -> bool:
        """Return whether the number of replicas follows the load."""
        return self.min_replicas < self.max_replicas

    @property
    def targets(self) -> dict[ScaleMetric, float]:
        """Return what each replica should have of what is watched."""
        limit = self.container_concurrency
        concurrency = max(1.0, limit * _UTILIZATION) if limit else DEFAULT_CONCURRENCY
        defaults = {ScaleMetric.CONCURRENCY: concurrency, ScaleMetric.QUEUE_TIME: DEFAULT_QUEUE_MS}
        if self.metric is None and self.target is None:
            return defaults
        metric = self.metric or ScaleMetric.CONCURRENCY
        return {metric: self.target if self.target is not None else defaults[metric]}

    def within(self, replicas: int) -> int:
        """Return the nearest number of replicas that is allowed."""
        return max(self.min_replicas, min(self.max_replicas, replicas))


def parse_scaling(predictor: Document) -> Scaling:
    """Return what `spec.predictor` says of replicas; raises InvalidInput with the field at fault."""
    minimum = predictor.integer("minReplicas", minimum=1, maximum=MAX_REPLICAS, default=1)
    maximum = predictor.integer("maxReplicas", minimum=1, maximum=MAX_REPLICAS, default=minimum)
    if maximum < minimum:
        raise _wrong(predictor, "maxReplicas", f"is {maximum}, less than minReplicas, which is {minimum}")
    metric, target = _metric(predictor), _target(predictor)
    for name, value in (("scaleMetric", metric), ("scaleTarget", target)):
        if value is not None and maximum == minimum:
            raise _wrong(predictor, name, f"cannot be honoured with {maximum} replicas only; raise maxReplicas")
    if metric is ScaleMetric.RPS and target is None:
        raise _wrong(predictor, "scaleTarget", "is missing; say how many requests a second a replica should have")
    return Scaling(
        min_replicas=minimum,
        max_replicas=maximum,
        metric=metric,
        target=target,
        container_concurrency=predictor.integer("containerConcurrency", minimum=0, maximum=MAX_CONCURRENCY, default=0),
    )


def put_scaling(predictor: dict[str, Any], scaling: Scaling) -> None:
    """Let a service file's `spec.predictor` say `scaling`."""
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


def _metric(predictor: Document) -> ScaleMetric | None:
    found = predictor.raw("scaleMetric", None)
    if found is None:
        return None
    if isinstance(found, str) and found in _CANNOT:
        choices = ", ".join(ScaleMetric)
        raise _wrong(predictor, "scaleMetric", f"is {found!r}, which tells too little: {_CANNOT[found]}; use {choices}")
    return predictor.choice("scaleMetric", ScaleMetric, ScaleMetric.CONCURRENCY)


def _target(predictor: Document) -> float | None:
    if predictor.raw("scaleTarget", None) is None:
        return None
    return predictor.number("scaleTarget", minimum=0.001, maximum=1e9)


def _wrong(predictor: Document, name: str, what: str) -> InvalidInput:
    return InvalidInput(f"{predictor.path(name)} {what}", field=predictor.path(name))
