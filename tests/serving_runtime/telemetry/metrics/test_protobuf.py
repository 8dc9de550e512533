"""The protobuf page: what Prometheus asks for, and native histograms that decode to what was observed."""

import math
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime import proto
from serving_runtime.shared.latency_edges import EDGES_US
from serving_runtime.telemetry.metrics import protobuf
from serving_runtime.telemetry.metrics.families import Family, ModelSeries, families
from serving_runtime.telemetry.metrics.histogram import Histogram
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics

PROMETHEUS = (
    "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        pytest.param(PROMETHEUS, True, id="Prometheus with native histograms"),
        pytest.param("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", False, id="Prometheus without"),
        pytest.param("", False, id="no header"),
        pytest.param("*/*", False, id="curl"),
        pytest.param("application/vnd.google.protobuf", False, id="another protobuf"),
        pytest.param(PROMETHEUS.replace("q=0.2", "q=0.9"), False, id="text is preferred"),
        pytest.param(PROMETHEUS.replace("q=0.6", "q=zero"), False, id="nonsense"),
    ],
)
def test_protobuf_is_served_to_those_who_prefer_it(accept: str, wanted: bool) -> None:
    assert protobuf.wanted(accept) is wanted


def parsed(page: bytes) -> dict[str, Any]:
    """Return the families of a page by name: messages after their lengths as varints."""
    found: dict[str, Any] = {}
    position = 0
    while position < len(page):
        length = shift = 0
        while True:
            byte = page[position]
            position += 1
            length |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        message = proto.message("io.prometheus.client.MetricFamily").FromString(page[position : position + length])
        found[message.name] = message
        position += length
    return found


def buckets(histogram: Any) -> dict[int, int]:
    """Return the positive buckets by index, as the spans and deltas say."""
    found: dict[int, int] = {}
    deltas = iter(histogram.positive_delta)
    index = count = 0
    for span in histogram.positive_span:
        index += span.offset
        for _ in range(span.length):
            count += next(deltas)
            if count:
                found[index] = count
            index += 1
    assert list(deltas) == []
    return found


def rendered(histogram: Histogram) -> Any:
    page = protobuf.render([Family("h", "histogram", "A histogram", [({"a": "b"}, histogram)])])
    return parsed(page)["h"].metric[0].histogram


@given(values_ns=st.lists(st.one_of(st.integers(0, 5000), st.integers(0, 2**45)), max_size=100))
def test_spans_and_deltas_decode_to_what_was_observed(values_ns: list[int]) -> None:
    histogram = Histogram()
    for value in values_ns:
        histogram.observe(value)
    message = rendered(histogram)
    zero, positive = histogram.native()
    assert (message.schema, message.zero_threshold, message.zero_count) == (3, 1.0, zero)
    assert buckets(message) == positive
    assert message.sample_count == len(values_ns) == zero + sum(positive.values())
    assert message.sample_sum == pytest.approx(sum(values_ns) / 1000)


def test_near_buckets_share_a_span_and_far_ones_do_not() -> None:
    assert protobuf.spans({3: 5, 4: 2, 7: 4, 20: 1}) == ([(3, 5), (12, 1)], [5, -3, -2, 0, 4, -3])
    assert protobuf.spans({}) == ([], [])


def test_an_empty_histogram_is_a_native_one_too() -> None:
    message = rendered(Histogram())
    assert [(span.offset, span.length) for span in message.positive_span] == [(0, 0)]


def test_classic_buckets_stand_beside_the_native_ones() -> None:
    histogram = Histogram()
    for value_us in (60, 90, 600, 10**8):
        histogram.observe(value_us * 1000)
    message = rendered(histogram)
    bounds = [bucket.upper_bound for bucket in message.bucket]
    assert bounds == [*EDGES_US, math.inf]
    by_bound = {bucket.upper_bound: bucket.cumulative_count for bucket in message.bucket}
    assert (by_bound[50], by_bound[100], by_bound[750], by_bound[math.inf]) == (0, 2, 3, 4)


def test_a_p99_of_two_scraped_replicas_is_right_within_the_schemas_error() -> None:
    source = random.Random(3)
    latencies = [[int(source.lognormvariate(mean, 0.5)) for _ in range(3000)] for mean in (13.0, 14.5)]
    base = 2 ** (2**-3)
    together: dict[int, int] = {}
    for replica in latencies:
        statistics = ModelStatistics()
        for latency in replica:
            statistics.record_batch([0], 1, BatchTiming(0, 0, latency, latency))
        page = protobuf.render(families([ModelSeries("m", "1", statistics, 0)], MetricsSettings()))
        for bucket, count in buckets(
            parsed(page)["fairlead_inference_request_duration_us"].metric[0].histogram
        ).items():
            together[bucket] = together.get(bucket, 0) + count
    seen, rank = 0, 0.99 * 6000
    for index in sorted(together):
        seen += together[index]
        if seen >= rank:
            break
    estimate = 2 * base ** (index - 1) * base**index / (base ** (index - 1) + base**index)
    exact_us = sorted(latencies[0] + latencies[1])[math.ceil(rank) - 1] / 1000
    assert estimate == pytest.approx(exact_us, rel=(base - 1) / (base + 1))


def test_counters_and_gauges_carry_their_labels() -> None:
    statistics = ModelStatistics()
    statistics.accepted = 3
    page = protobuf.render(families([ModelSeries("m", "1", statistics, 2, {"team": "a"})], MetricsSettings()))
    found = parsed(page)
    (metric,) = found["nv_inference_pending_request_count"].metric
    assert {label.name: label.value for label in metric.label} == {"model": "m", "version": "1", "team": "a"}
    assert metric.gauge.value == 2
    assert found["nv_inference_request_success"].metric[0].HasField("counter")
    assert len(found["nv_inference_request_failure"].metric) == 4
