"""Counts of the proxy's inference requests, in the runtime's metrics.

    began --+--> answered     below 400
            `--> failed       BACKEND: 5xx, a broken answer, no container; OTHER: 4xx; CANCELED: the client left;
                              REJECTED: too many wait already

A request counts as one row and one execution: how many rows its body has is the container's knowledge. The control
plane reads REJECTED and BACKEND as the revision's errors (integrations.metrics.counters).
"""

import time
from collections.abc import Callable, Iterator

from serving_runtime.common.errors import FailureReason
from serving_runtime.telemetry.metrics.families import Family, ModelSeries, families
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from serving_runtime.telemetry.statistics import ModelStatistics

_VERSION = "1"
"""Label of all requests: a version in the path is the client's text, and would be a series each."""


class RequestCounts:
    """Counts of one model."""

    def __init__(self, model_name: str, waiting: Callable[[], int]) -> None:
        self._model = model_name
        self._waiting = waiting
        self._statistics = ModelStatistics()

    @property
    def in_flight(self) -> int:
        return self._statistics.inflight

    def began(self) -> None:
        self._statistics.accepted += 1

    def ended(self, status: int, duration_ns: int, waited_ns: int) -> None:
        """Count a request that the container answered whole."""
        if status < 400:
            self._statistics.record_answer(duration_ns, waited_ns)
        else:
            self.failed(FailureReason.OTHER if status < 500 else FailureReason.BACKEND, duration_ns)

    def failed(self, reason: FailureReason, duration_ns: int) -> None:
        self._statistics.record_failure(reason, duration_ns)

    def families(self) -> Iterator[Family]:
        """Yield the metrics."""
        series = ModelSeries(self._model, _VERSION, self._statistics, self._waiting())
        return families([series], MetricsSettings())


def now_ns() -> int:
    return time.monotonic_ns()
