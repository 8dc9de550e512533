"""Latency histograms that are classic and native at once: one bucket index per observation serves both forms.

A classic Prometheus histogram has the edges it was given. A native one has an edge at every power of 2^(1/2^schema)
(Prometheus: native histograms, exponential buckets), so that histograms of several replicas add up to one whose
quantiles are right within half a bucket. The cells counted here are cut at the edges of both, so that each lies within
one bucket of either form; a scrape adds them up.
"""

import itertools
import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any, NamedTuple

from serving_runtime.shared.latency_edges import EDGES_US

NATIVE_SCHEMA = 3
"""Buckets grow by 2^(1/8), 9 %: a quantile from the middle of its bucket is off by at most 4.4 %."""

_PER_OCTAVE = 1 << NATIVE_SCHEMA

ZERO_THRESHOLD = 1.0
"""In the histogram's unit; the zero bucket holds values up to it."""

_LONGEST_NS = 2**42
"""More than an hour; longer durations count in the native bucket that begins there."""


class NativeBuckets(NamedTuple):
    """The native form of a histogram.

    Attributes:
        positive: count by bucket index; bucket i is (2^((i-1)/2^schema), 2^(i/2^schema)] in the histogram's unit.
    """

    zero: int
    positive: dict[int, int]


class Layout:
    """Cell boundaries of a histogram.

    Args:
        edges: of the classic form, ascending, in the unit.
        unit_ns: one unit of the metric, in nanoseconds.
    """

    def __init__(self, edges: Sequence[float], unit_ns: int) -> None:
        self.edges = tuple(edges)
        self.unit_ns = unit_ns
        classic = [round(edge * unit_ns) for edge in edges]
        natives = itertools.takewhile(lambda cut: cut <= _LONGEST_NS, (self._native_ns(i) for i in itertools.count()))
        native = list(natives)
        self.cuts_ns = sorted({*classic, *native})
        ends: list[float] = [*self.cuts_ns, math.inf]
        starts = [0, *[self.cuts_ns.index(edge) + 1 for edge in classic], len(ends)]
        self.cells_of_classic = [slice(*pair) for pair in itertools.pairwise(starts)]
        self.native_of_cell = [bisect_left(native, end) for end in ends]

    def __deepcopy__(self, _memo: Any) -> "Layout":
        return self

    def _native_ns(self, index: int) -> int:
        """Return the last whole nanosecond in a native bucket."""
        octave, part = divmod(index, _PER_OCTAVE)
        return int(ZERO_THRESHOLD * self.unit_ns * 2**octave * 2 ** (part / _PER_OCTAVE))


MICROSECONDS = Layout(EDGES_US, 1000)


class Histogram:
    """Counts per cell; a value equal to an edge falls below it, as in Prometheus' `le` and native buckets.

    Attributes:
        cells: counts, not cumulative; the last one is everything above the last cut.
        sum_ns: of all observed values.
    """

    __slots__ = ("_cuts_ns", "cells", "layout", "sum_ns")

    def __init__(self, layout: Layout = MICROSECONDS) -> None:
        self.layout = layout
        self._cuts_ns = layout.cuts_ns
        self.cells = [0] * (len(self._cuts_ns) + 1)
        self.sum_ns = 0

    def observe(self, value_ns: int, times: int = 1) -> None:
        self.cells[bisect_left(self._cuts_ns, value_ns)] += times
        self.sum_ns += value_ns * times

    def observe_until(self, end_ns: int, begun_ns: Sequence[int]) -> None:
        """Count the durations from each of several moments to one."""
        cells, cuts_ns = self.cells, self._cuts_ns
        for began in begun_ns:
            cells[bisect_left(cuts_ns, end_ns - began)] += 1
        self.sum_ns += end_ns * len(begun_ns) - sum(begun_ns)

    def add(self, other: "Histogram") -> None:
        """Add another histogram's counts; where its boundaries differ, by the cells' upper ends."""
        for end, count in zip((*other.layout.cuts_ns, math.inf), other.cells, strict=True):
            if count:
                self.cells[bisect_left(self._cuts_ns, end)] += count
        self.sum_ns += other.sum_ns

    @property
    def count(self) -> int:
        return sum(self.cells)

    @property
    def sum(self) -> float:
        """Return the sum of all observed values in the unit of the layout."""
        return self.sum_ns / self.layout.unit_ns

    def classic(self) -> list[int]:
        """Return the count per classic bucket, not cumulative; the last one is everything above the last edge."""
        cells = self.cells
        return [sum(cells[part]) for part in self.layout.cells_of_classic]

    def native(self) -> NativeBuckets:
        """Return the native form, without empty buckets."""
        zero, positive = 0, dict[int, int]()
        for bucket, count in zip(self.layout.native_of_cell, self.cells, strict=True):
            if not bucket:
                zero += count
            elif count:
                positive[bucket] = positive.get(bucket, 0) + count
        return NativeBuckets(zero, positive)
