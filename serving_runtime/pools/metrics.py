"""Metrics of a model pool: how often requests find their model loaded, what loads cost, how full the memory is."""

from collections import Counter
from collections.abc import Iterator

from serving_runtime.telemetry.metrics.families import Family
from serving_runtime.telemetry.metrics.histogram import Histogram

MOST_SLOWEST = 20
"""Model versions of which the page has the duration of their longest load."""


class PoolCounts:
    """Counters of one runtime; lives on the event loop.

    Attributes:
        requests: inference requests for models of the pool, those that wait included.
        misses: requests whose model was not loaded.
        evictions: models that left for others.
        failures: loads that failed, by reason.
    """

    def __init__(self) -> None:
        self.requests = 0
        self.misses = 0
        self.evictions = 0
        self.failures: Counter[str] = Counter()
        self._loads = Histogram()
        self._slowest: dict[str, float] = {}

    def loaded(self, name: str, took_s: float) -> None:
        """Count a load of `<namespace>.<service>@<version>`."""
        self._loads.observe(int(took_s * 1e9))
        self._slowest[name] = max(took_s, self._slowest.get(name, 0.0))
        if len(self._slowest) > MOST_SLOWEST:
            del self._slowest[min(self._slowest, key=self._slowest.__getitem__)]

    def failed(self, reason: str) -> None:
        self.failures[reason] += 1

    def families(
        self, *, loaded_models: int, used_bytes: int, limit_bytes: int | None, waiting: int
    ) -> Iterator[Family]:
        """Yield the families of the metrics page.

        Args:
            loaded_models: versions that are loaded.
            used_bytes: measured memory of the loaded models, and what running loads claim.
            limit_bytes: the budget; None for none.
            waiting: requests that wait for a load.
        """
        for name, kind, text, value in (
            ("hits", "counter", "Requests whose model was loaded", max(0, self.requests - self.misses)),
            ("misses", "counter", "Requests that waited for a load", self.misses),
            ("evictions", "counter", "Models that were unloaded to make room for others", self.evictions),
            ("loaded_models", "gauge", "Model versions in memory", loaded_models),
            ("memory_bytes", "gauge", "Memory of the loaded models", used_bytes),
            ("memory_limit_bytes", "gauge", "Memory that the loaded models may take, 0 for no limit", limit_bytes or 0),
            ("waiting_requests", "gauge", "Requests that wait for a load now", waiting),
        ):
            yield Family(f"fairlead_pool_{name}", kind, text, [({}, value)])
        yield Family(
            "fairlead_pool_load_failures",
            "counter",
            "Loads that failed, by reason",
            [({"reason": reason}, count) for reason, count in sorted(self.failures.items())],
        )
        yield Family(
            "fairlead_pool_load_duration_us",
            "histogram",
            "Loads from the first request until the model answers, fetching included, microseconds",
            [({}, self._loads)],
        )
        yield Family(
            "fairlead_pool_slowest_load_duration_us",
            "gauge",
            "Longest load of the model versions whose loads took the longest, microseconds",
            [(_labels(name), round(took_s * 1e6)) for name, took_s in sorted(self._slowest.items())],
        )


def _labels(name: str) -> dict[str, str]:
    model, _, version = name.rpartition("@")
    return {"model": model, "version": version}
