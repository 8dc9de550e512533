"""Models on the metrics page of a pool: the ones that were used lately, so that the page stays small.

A model that is evicted stays on the page for a while, and its counts go on when it is loaded again: a scrape misses
none of them, and counters do not begin at 0 with every load.
"""

import heapq
import time
from collections import OrderedDict

from serving_runtime.engine.servables.servable import Servable
from serving_runtime.pools.names import VersionKey
from serving_runtime.telemetry.metrics.families import ModelSeries
from serving_runtime.telemetry.statistics import ModelStatistics

MOST = 500
"""Model versions on a page."""

LATELY_S = 600.0


class ShownModels:
    """Loaded and evicted versions with their statistics. Lives on the event loop."""

    def __init__(self) -> None:
        self._loaded: dict[VersionKey, Servable] = {}
        self._left: OrderedDict[VersionKey, tuple[float, ModelStatistics]] = OrderedDict()

    def load(self, key: VersionKey, servable: Servable) -> None:
        """Take a version that was loaded, with the counts that it had before."""
        _, before = self._left.pop(key, (0.0, None))
        replaced = self._loaded.get(key)
        if replaced is not None and replaced is not servable:
            before = None  # the servable continues the counts of one that it replaces
        if before is not None:
            servable.statistics.add(before)
        self._loaded[key] = servable

    def leave(self, key: VersionKey) -> None:
        """Keep the counts of a version that is unloaded; requests in flight still count."""
        servable = self._loaded.pop(key)
        self._left[key] = time.monotonic(), servable.statistics
        if len(self._left) > MOST:
            self._left.popitem(last=False)

    def series(self) -> list[ModelSeries]:
        """Return the versions used lately, the last used first where there are too many."""
        since_ms = time.time_ns() // 1_000_000 - int(LATELY_S * 1000)
        used = ((servable.last_used_ms, key) for key, servable in self._loaded.items())
        chosen = heapq.nlargest(MOST, (entry for entry in used if entry[0] >= since_ms))
        found = [_series(key, self._loaded[key]) for _, key in chosen]
        oldest = time.monotonic() - LATELY_S
        left = [(key, counts) for key, (at, counts) in reversed(self._left.items()) if at >= oldest]
        found += [ModelSeries(key.model, str(key.version), counts, 0) for key, counts in left[: MOST - len(found)]]
        return sorted(found, key=lambda series: (series.model, int(series.version)))


def _series(key: VersionKey, servable: Servable) -> ModelSeries:
    return ModelSeries(
        key.model,
        servable.version,
        servable.counts,
        servable.scheduler.pending,
        servable.config.metrics.tags,
        servable.memory_bytes,
    )
