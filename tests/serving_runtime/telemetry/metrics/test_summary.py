"""Quantiles of the last minute."""

import math
import random

import pytest

from serving_runtime.telemetry.metrics import protobuf, text
from serving_runtime.telemetry.metrics.families import ModelSeries, families
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from serving_runtime.telemetry.metrics.summary import WINDOW_S, Summary
from serving_runtime.telemetry.statistics import BatchTiming, ModelStatistics, SummarisedStatistics


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_quantile_is_of_the_right_rank_and_near_in_value() -> None:
    source = random.Random(1)
    values = [int(source.lognormvariate(12, 1)) for _ in range(10_000)]
    summary = Summary(Clock())
    for value in values:
        summary.observe(value)
    ordered = sorted(values)
    for rank, found in zip((0.5, 0.95, 0.99), summary.quantiles_ns((0.5, 0.95, 0.99)), strict=True):
        assert found == pytest.approx(ordered[math.ceil(rank * 10_000) - 1], rel=0.0014)
    assert (summary.count, summary.sum_ns) == (10_000, sum(values))


def test_quantiles_forget_what_is_older_than_the_window_and_count_and_sum_do_not() -> None:
    clock = Clock()
    summary = Summary(clock)
    summary.observe(1_000_000, 9)
    clock.now += WINDOW_S / 2
    summary.observe(1000)
    assert summary.quantiles_ns([0.5])[0] == pytest.approx(1_000_000, rel=0.0014)
    clock.now += WINDOW_S / 2 + 1
    assert summary.quantiles_ns([0.5])[0] == pytest.approx(1000, rel=0.0014)
    clock.now += 10 * WINDOW_S
    assert math.isnan(summary.quantiles_ns([0.5])[0])
    assert (summary.count, summary.sum_ns) == (10, 9_001_000)


def test_nothing_is_a_duration_too() -> None:
    summary = Summary(Clock())
    summary.observe(0)
    assert summary.quantiles_ns([0, 1]) == [0, 0]


def test_summaries_of_a_reloaded_model_go_on() -> None:
    clock = Clock()
    before, after = Summary(clock), Summary(clock)
    before.observe(1000, 3)
    after.observe(9000)
    after.add(before)
    assert (after.count, after.sum_ns) == (4, 12_000)
    assert after.quantiles_ns([0.5])[0] == pytest.approx(1000, rel=0.0014)


@pytest.mark.feature("M4")
def test_summaries_are_shown_with_their_quantiles() -> None:
    statistics = SummarisedStatistics()
    statistics.record_batch([0, 40_000], 2, BatchTiming(100_000, 110_000, 160_000, 165_000))
    settings = MetricsSettings(summary_latencies=True, summary_quantiles=(0.5, 1))
    lines = text.render(families([ModelSeries("m", "1", statistics, 0)], settings)).decode().splitlines()
    assert "# TYPE nv_inference_queue_summary_us summary" in lines
    labels = 'model="m",version="1"'
    assert f"nv_inference_queue_summary_us_sum{{{labels}}} 160" in lines
    assert f"nv_inference_compute_infer_summary_us_count{{{labels}}} 2" in lines
    shown = {line.partition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if "quantile" in line}
    assert len(shown) == 10
    assert shown[f'nv_inference_request_summary_us{{{labels},quantile="0.5"}}'] == pytest.approx(125, rel=0.0014)
    assert shown[f'nv_inference_request_summary_us{{{labels},quantile="1"}}'] == pytest.approx(165, rel=0.0014)
    assert protobuf.render(families([ModelSeries("m", "1", statistics, 0)], settings))


def test_counts_of_a_model_with_summaries_add_up() -> None:
    statistics = SummarisedStatistics()
    statistics.record_batch([0], 1, BatchTiming(1000, 2000, 3000, 4000))
    total = ModelStatistics()
    for _ in range(2):
        total.add(statistics)
    assert total.summaries is not None
    assert total.summaries["request"].count == 2
    assert statistics.summaries["request"].count == 1
