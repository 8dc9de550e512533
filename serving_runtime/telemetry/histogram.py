"""Latency histograms with fixed microsecond edges, one bisect and two additions per observation."""

from bisect import bisect_left

EDGES_US = (
    50, 100, 200, 300, 500, 750,
    1_000, 1_500, 2_000, 3_000, 5_000, 7_500,
    10_000, 15_000, 20_000, 30_000, 50_000, 75_000,
    100_000, 150_000, 200_000, 300_000, 500_000,
    1_000_000, 2_000_000, 5_000_000, 10_000_000,
)  # fmt: skip

_EDGES_NS = tuple(edge * 1000 for edge in EDGES_US)


class Histogram:
    """Counts per bucket; a value equal to an edge falls below it, as Prometheus' `le` says.

    Attributes:
        counts: per bucket, not cumulative; the last one is everything above the last edge.
        sum_ns: of all observed values.
    """

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(EDGES_US) + 1)
        self.sum_ns = 0

    def observe(self, value_ns: int, times: int = 1) -> None:
        self.counts[bisect_left(_EDGES_NS, value_ns)] += times
        self.sum_ns += value_ns * times

    def add(self, other: "Histogram") -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum_ns += other.sum_ns
