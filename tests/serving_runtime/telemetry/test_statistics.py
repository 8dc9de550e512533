"""Counters as Triton counts them, histograms as Prometheus reads them."""

import math

import pytest
from prometheus_client.parser import text_string_to_metric_families

from serving_runtime.errors import FailureReason
from serving_runtime.telemetry.exposition import ModelSeries, render
from serving_runtime.telemetry.histogram import EDGES_US, Histogram
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics

US = 1000


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
def test_a_value_falls_into_the_bucket_below_its_edge(value_us: float, edge_us: float) -> None:
    histogram = Histogram()
    histogram.observe(int(value_us * US), 2)
    edges = [*EDGES_US, math.inf]
    assert histogram.counts[edges.index(edge_us)] == 2
    assert sum(histogram.counts) == 2
    assert histogram.sum_ns == 2 * int(value_us * US)


def three_requests_in_one_batch() -> ModelStatistics:
    statistics = ModelStatistics()
    statistics.accepted = 5
    timing = BatchTiming(started=100 * US, input_done=110 * US, infer_done=160 * US, output_done=165 * US)
    statistics.record_batch([0, 40 * US, 90 * US], 4, timing)
    statistics.record_failure(FailureReason.BACKEND, 7 * US)
    return statistics


def test_a_batch_counts_its_time_once_per_request_and_once_per_batch() -> None:
    statistics = three_requests_in_one_batch()
    assert (statistics.successes, statistics.inferences, statistics.executions) == (3, 4, 1)
    assert (statistics.inflight, statistics.failed) == (1, 1)
    assert statistics.queue_ns == (100 + 60 + 10) * US
    assert statistics.infer_ns == 3 * 50 * US
    assert statistics.batches[4].infer_ns == 50 * US
    assert statistics.request_latency.sum_ns == (165 + 125 + 75) * US


def test_the_metrics_page_is_what_prometheus_reads() -> None:
    page = render([ModelSeries('m"\\', "1", three_requests_in_one_batch(), pending=2)])
    samples = {  # the parser appends _total to counters, which Triton's names do not have
        (sample.name.removesuffix("_total"), sample.labels.get("le") or sample.labels.get("reason")): sample
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    labels = {"model": 'm"\\', "version": "1"}
    assert samples["nv_inference_request_success", None].labels == labels
    assert samples["nv_inference_request_success", None].value == 3
    assert samples["nv_inference_request_failure", "BACKEND"].value == 1
    assert samples["nv_inference_request_failure", "REJECTED"].value == 0
    assert samples["nv_inference_count", None].value == 4
    assert samples["nv_inference_exec_count", None].value == 1
    assert samples["nv_inference_queue_duration_us", None].value == 170
    assert samples["nv_inference_compute_infer_duration_us", None].value == 150
    assert samples["nv_inference_pending_request_count", None].value == 2
    assert samples["fairlead_inflight_requests", None].value == 1
    assert samples["fairlead_inference_request_duration_us_bucket", "100"].value == 1
    assert samples["fairlead_inference_request_duration_us_bucket", "200"].value == 3
    assert samples["fairlead_inference_request_duration_us_bucket", "+Inf"].value == 3
    assert samples["fairlead_inference_request_duration_us_sum", None].value == 365
    assert samples["fairlead_inference_compute_duration_us_count", None].value == 3
    assert samples["process_start_time_seconds", None].value > 1_700_000_000
