"""Custom metrics, worker side: pb_utils.MetricFamily (Triton: Python backend, custom metrics)."""

import queue
from collections.abc import Mapping, Sequence
from typing import Any

from serving_runtime.backends.python.worker.connection import current
from serving_runtime.backends.python.worker.tensors import TritonModelException


class Metric:
    """One series; made by `MetricFamily.Metric`. Those of equal name and labels are summed over a model's instances."""

    def __init__(self, family: "MetricFamily", labels: Mapping[str, str], buckets: Sequence[float]) -> None:
        self._kind = family.kind
        self._description = {"name": family.name, "labels": dict(labels)}
        self._made = False
        made = {"kind": family.kind, "text": family.description, "buckets": [float(edge) for edge in buckets]}
        if problem := _asked({**self._description, **made, "action": "make"})["problem"]:
            raise TritonModelException(problem)
        self._made = True

    def increment(self, value: float) -> None:
        """Add to a counter, by a non-negative value, or to a gauge."""
        if self._kind == MetricFamily.HISTOGRAM or (self._kind == MetricFamily.COUNTER and value < 0):
            raise TritonModelException(f"a {self._kind} cannot be incremented by {value}")
        self._change("increment", value)

    def set(self, value: float) -> None:
        """Set a gauge."""
        if self._kind != MetricFamily.GAUGE:
            raise TritonModelException(f"a {self._kind} cannot be set; a gauge can")
        self._change("set", value)

    def observe(self, value: float) -> None:
        """Observe a value in a histogram."""
        if self._kind != MetricFamily.HISTOGRAM:
            raise TritonModelException(f"a {self._kind} cannot observe; a histogram can")
        self._change("observe", value)

    def value(self) -> float:
        """Return the value of a counter or a gauge."""
        if self._kind == MetricFamily.HISTOGRAM:
            raise TritonModelException("a histogram has no value")
        return float(_asked({**self._description, "action": "value"})["value"])

    def _change(self, action: str, value: float) -> None:
        current().send({**self._description, "do": "metric", "action": action, "value": float(value)})

    def __del__(self) -> None:
        if self._made:
            current().send({**self._description, "do": "metric", "action": "drop"})


class MetricFamily:
    """A metric's name, description and kind."""

    COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

    def __init__(self, name: str, description: str, kind: str) -> None:
        self.name, self.description, self.kind = name, description, kind

    def Metric(  # noqa: N802 - Triton's name
        self, labels: Mapping[str, str] | None = None, buckets: Sequence[float] | None = None
    ) -> Metric:
        """Create a series; raises TritonModelException on failure."""
        return Metric(self, labels or {}, buckets or ())


def _asked(message: dict[str, Any]) -> dict[str, Any]:
    answers: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    current().call({**message, "do": "metric"}, (), lambda answer: answers.put(answer[0]))
    return answers.get()
