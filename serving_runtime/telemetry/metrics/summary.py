"""Latency summaries: quantiles over the last minute (Triton: summaries; Prometheus: a sliding window of five parts).

Durations are counted in buckets that grow by 2^(1/256), so a quantile is of the right rank and off in value by at
most 0.14 %, whatever error --metrics-config sets. Only servers with summaries on keep them.
"""

import math
import time
from collections.abc import Callable, Sequence

WINDOW_S = 60.0
PARTS = 5

_PER_OCTAVE = 256


class Summary:
    """Count and sum since the start, quantiles of the last minute; written on the event loop only."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = 0
        self.sum_ns = 0
        self._clock = clock
        self._parts: list[dict[int, int]] = [{} for _ in range(PARTS)]
        self._part = self._now()

    def observe(self, value_ns: int, times: int = 1) -> None:
        self.count += times
        self.sum_ns += value_ns * times
        self._turn()
        counts = self._parts[self._part % PARTS]
        bucket = math.ceil(math.log2(value_ns) * _PER_OCTAVE) if value_ns > 0 else -1
        counts[bucket] = counts.get(bucket, 0) + times

    def quantiles_ns(self, ranks: Sequence[float]) -> list[float]:
        """Return the durations at these ranks (0 to 1) within the window; NaN where it is empty."""
        self._turn()
        counts: dict[int, int] = {}
        for part in self._parts:
            for bucket, count in part.items():
                counts[bucket] = counts.get(bucket, 0) + count
        total = sum(counts.values())
        ordered = sorted(counts.items())
        return [_at(ordered, rank * total) if total else math.nan for rank in ranks]

    def add(self, other: "Summary") -> None:
        """Add the counts of another summary on the same clock."""
        self.count += other.count
        self.sum_ns += other.sum_ns
        self._turn()
        other._turn()
        for mine, theirs in zip(self._parts, other._parts, strict=True):
            for bucket, count in theirs.items():
                mine[bucket] = mine.get(bucket, 0) + count

    def _now(self) -> int:
        return int(self._clock() / (WINDOW_S / PARTS))

    def _turn(self) -> None:
        """Clear the expired parts of the window."""
        now = self._now()
        for part in range(max(self._part + 1, now - PARTS + 1), now + 1):
            self._parts[part % PARTS] = {}
        self._part = now


def _at(ordered: list[tuple[int, int]], wanted: float) -> float:
    seen = 0
    for bucket, count in ordered:
        seen += count
        if seen >= wanted:
            return _middle(bucket)
    return _middle(ordered[-1][0])


def _middle(bucket: int) -> float:
    return 2 ** ((bucket - 0.5) / _PER_OCTAVE) if bucket >= 0 else 0.0
