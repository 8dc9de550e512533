"""Counters as Triton counts them, histograms as Prometheus reads them."""

from prometheus_client.parser import text_string_to_metric_families

from serving_runtime.common.errors import FailureReason
from serving_runtime.telemetry.metrics import text
from serving_runtime.telemetry.metrics.families import ModelSeries, families
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics

US = 1000


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


def test_executions_of_like_size_are_counted_together_and_once() -> None:
    statistics = three_requests_in_one_batch()
    for rows in (1, 2, 3, 4, 5):
        statistics.record_batch([0] * rows, rows, BatchTiming(0, 1 * US, 3 * US, 6 * US))
    assert statistics.by_batch_size() == {1: (1, 6 * US), 2: (2, 6 * US), 4: (11, 77 * US), 8: (5, 6 * US)}
    page = text.render(families([ModelSeries("m", "1", statistics, 0)], MetricsSettings())).decode()
    assert 'fairlead_batch_rows{model="m",version="1",batch_size="4"} 11' in page
    assert 'fairlead_batch_duration_us{model="m",version="1",batch_size="4"} 77' in page


def test_the_metrics_page_is_what_prometheus_reads() -> None:
    series = ModelSeries('m"\\', "1", three_requests_in_one_batch(), pending=2)
    page = text.render(families([series], MetricsSettings())).decode()
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
