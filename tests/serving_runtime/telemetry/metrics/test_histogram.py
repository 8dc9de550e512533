"""Histograms that are classic and native at once, and what quantiles can be had from them."""

import math
import random
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.shared.latency_edges import EDGES_US
from serving_runtime.telemetry.metrics.histogram import NATIVE_SCHEMA, Histogram, Layout

US = 1000
BASE = 2 ** (2**-NATIVE_SCHEMA)
RELATIVE_ERROR = (BASE - 1) / (BASE + 1)
"""Of a value estimated by the middle (harmonic) of its bucket."""


@pytest.mark.parametrize(
    ("value_us", "edge_us"),
    [
        pytest.param(0, 50, id="nothing falls into the first bucket"),
        pytest.param(50, 50, id="an edge belongs to the bucket that it ends"),
        pytest.param(50.001, 100, id="just above an edge is the next bucket"),
        pytest.param(10_000_000, 10_000_000, id="the last edge"),
        pytest.param(10_000_001, math.inf, id="above the last edge"),
    ],
)
def test_a_value_falls_into_the_classic_bucket_below_its_edge(value_us: float, edge_us: float) -> None:
    histogram = Histogram()
    histogram.observe(int(value_us * US), 2)
    counts = histogram.classic()
    assert counts[[*EDGES_US, math.inf].index(edge_us)] == 2
    assert (sum(counts), histogram.count) == (2, 2)
    assert histogram.sum_ns == 2 * int(value_us * US)


@given(values_ns=st.lists(st.integers(0, 2**41), max_size=200))
def test_both_forms_hold_each_value_where_it_belongs(values_ns: list[int]) -> None:
    histogram = Histogram()
    classic = [0] * (len(EDGES_US) + 1)
    native: dict[int, int] = {}
    zero = 0
    for value in values_ns:
        histogram.observe(value)
        classic[bisect_left(EDGES_US, value / US)] += 1
        if value <= US:
            zero += 1
        else:
            index = math.ceil(round(math.log2(value / US) * 2**NATIVE_SCHEMA, 9))
            native[index] = native.get(index, 0) + 1
    assert histogram.classic() == classic
    assert histogram.native() == (zero, native)


@pytest.mark.parametrize(
    ("value_us", "bucket"),
    [
        pytest.param(1.001, 1, id="just above the zero bucket"),
        pytest.param(2, 8, id="a power of two ends its bucket"),
        pytest.param(2.001, 9, id="just above a power of two"),
        pytest.param(1024, 80, id="a millisecond or so"),
    ],
)
def test_native_buckets_end_at_powers(value_us: float, bucket: int) -> None:
    histogram = Histogram()
    histogram.observe(round(value_us * US))
    assert histogram.native() == (0, {bucket: 1})


def test_a_value_beyond_all_buckets_is_counted_in_the_last() -> None:
    histogram = Histogram()
    for value in (2**43, 2**50):
        histogram.observe(value)
    (bucket,) = histogram.native().positive
    assert histogram.native().positive[bucket] == 2
    assert 2 ** (bucket / 2**NATIVE_SCHEMA) > 3600 * 1e6


def quantile(rank: float, buckets: dict[int, int]) -> float:
    """Return a quantile of native buckets: the harmonic middle of the bucket that it falls into."""
    wanted, seen = rank * sum(buckets.values()), 0
    for index in sorted(buckets):
        seen += buckets[index]
        if seen >= wanted:
            low, high = BASE ** (index - 1), BASE**index
            return 2 * low * high / (low + high)
    raise AssertionError("no observations")


@pytest.mark.parametrize("rank", [0.5, 0.9, 0.99])
def test_a_quantile_over_two_replicas_is_right_within_half_a_bucket(rank: float) -> None:
    source = random.Random(7)
    quick = [int(source.lognormvariate(13, 0.4)) for _ in range(5000)]
    slow = [int(source.lognormvariate(15, 0.8)) for _ in range(800)]
    together: dict[int, int] = {}
    for values in (quick, slow):
        replica = Histogram()
        for value in values:
            replica.observe(value)
        for bucket, count in replica.native().positive.items():
            together[bucket] = together.get(bucket, 0) + count
    exact_us = sorted(quick + slow)[math.ceil(rank * 5800) - 1] / US
    assert quantile(rank, together) == pytest.approx(exact_us, rel=RELATIVE_ERROR + 1e-9)


def test_counts_of_a_histogram_with_other_edges_are_added_by_their_upper_ends() -> None:
    ours, theirs = Histogram(Layout((10,), US)), Histogram(Layout((20,), US))
    theirs.observe(20 * US)
    theirs.observe(2**50)
    ours.observe(3 * US)
    ours.add(theirs)
    assert (ours.classic(), ours.count) == ([1, 2], 3)
    assert ours.sum_ns == 23 * US + 2**50
