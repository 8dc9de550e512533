"""Metric families as values, made from the statistics at each scrape; `text` and `protobuf` render them.

Names, labels and meaning of nv_* are Triton's (metrics); the fairlead_* ones are ours, because Triton has no latency
histogram from which a quantile over several replicas could be computed.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from serving_runtime.telemetry.metrics.cpu import CpuUse
from serving_runtime.telemetry.metrics.histogram import Histogram
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from serving_runtime.telemetry.metrics.summary import Summary
from serving_runtime.telemetry.statistics import ModelStatistics

PROCESS_START = time.time()


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """One model version's statistics, its queue depth, and the labels from its config."""

    model: str
    version: str
    statistics: ModelStatistics
    pending: int
    tags: Mapping[str, str] = field(default_factory=dict)
    memory_bytes: int = 0

    @property
    def labels(self) -> dict[str, str]:
        return {"model": self.model, "version": self.version, **self.tags}


class SummaryValues(NamedTuple):
    """A summary and the quantiles to show of it."""

    summary: Summary
    quantiles: tuple[float, ...]


class Buckets(NamedTuple):
    """A model's custom histogram; `counts` are not cumulative, the last one is above the last edge."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    total: float


Value: TypeAlias = float | Histogram | SummaryValues | Buckets


class Family(NamedTuple):
    """One metric.

    Attributes:
        kind: counter, gauge, histogram or summary.
        samples: labels and value of each series.
    """

    name: str
    kind: str
    text: str
    samples: list[tuple[Mapping[str, str], Value]]


class _Metric(NamedTuple):
    """A metric with one value per model version."""

    name: str
    kind: str
    text: str
    value: Callable[[ModelSeries], Value]


_COUNTS = (
    _Metric(
        "nv_inference_request_success",
        "counter",
        "Requests answered without error",
        lambda series: series.statistics.successes,
    ),
    _Metric("nv_inference_count", "counter", "Rows inferred", lambda series: series.statistics.inferences),
    _Metric("nv_inference_exec_count", "counter", "Times the model ran", lambda series: series.statistics.executions),
    _Metric("nv_inference_pending_request_count", "gauge", "Requests in the queue", lambda series: series.pending),
    _Metric(
        "fairlead_inflight_requests",
        "gauge",
        "Requests accepted and not yet answered",
        lambda series: series.statistics.inflight,
    ),
    _Metric(
        "fairlead_displaced_requests",
        "counter",
        "Waiting requests refused to make room for requests of other callers",
        lambda series: series.statistics.displaced,
    ),
    _Metric(
        "fairlead_model_memory_bytes",
        "gauge",
        "Memory that the model was found to take when it was loaded",
        lambda series: series.memory_bytes,
    ),
)

_DURATIONS: tuple[tuple[str, str, Callable[[ModelStatistics], int]], ...] = (
    ("request", "Time of successful requests, microseconds", lambda found: found.request_latency.sum_ns),
    ("queue", "Time that requests waited, microseconds", lambda found: found.queue_ns),
    ("compute_input", "Time to join inputs, microseconds", lambda found: found.input_ns),
    ("compute_infer", "Time the model ran, microseconds", lambda found: found.infer_ns),
    ("compute_output", "Time to part outputs, microseconds", lambda found: found.output_ns),
)

_CACHE = (
    _Metric(
        "nv_cache_num_hits_per_model",
        "counter",
        "Requests answered from the response cache",
        lambda series: series.statistics.cache_hits,
    ),
    _Metric(
        "nv_cache_num_misses_per_model",
        "counter",
        "Requests not found in the response cache",
        lambda series: series.statistics.cache_misses,
    ),
    _Metric(
        "nv_cache_hit_duration_per_model",
        "counter",
        "Time to find answers in the response cache, microseconds",
        lambda series: series.statistics.cache_hit_ns // 1000,
    ),
    _Metric(
        "nv_cache_miss_duration_per_model",
        "counter",
        "Time to look in vain in the response cache and to keep the answer, microseconds",
        lambda series: series.statistics.cache_miss_ns // 1000,
    ),
)

_HISTOGRAMS = (
    _Metric(
        "fairlead_inference_request_duration_us",
        "histogram",
        "Successful requests from arrival to answer, microseconds",
        lambda series: series.statistics.request_latency,
    ),
    _Metric(
        "fairlead_inference_queue_duration_us",
        "histogram",
        "Successful requests, time in the queue, microseconds",
        lambda series: series.statistics.queue_latency,
    ),
    _Metric(
        "fairlead_inference_compute_duration_us",
        "histogram",
        "Successful requests, time of their execution, microseconds",
        lambda series: series.statistics.compute_latency,
    ),
)


def families(
    all_series: Iterable[ModelSeries], settings: MetricsSettings, cpu: CpuUse | None = None
) -> Iterator[Family]:
    """Yield the families of models and of the process; `cpu` is None where its metrics are off."""
    yield from model_families(all_series, settings)
    yield from process_families(cpu)


def model_families(all_series: Iterable[ModelSeries], settings: MetricsSettings) -> Iterator[Family]:
    """Yield the families of models: the same ones in the same order for any set of models, also the empty one."""
    every = tuple(all_series)
    for metric in (*_COUNTS, *_HISTOGRAMS):
        yield _family(metric, every)
    yield Family(
        "nv_inference_request_failure",
        "counter",
        "Requests answered with an error, by reason",
        [
            ({**series.labels, "reason": reason.value}, count)
            for series in every
            for reason, count in series.statistics.failures.items()
        ],
    )
    yield from _batch_families(every)
    cached = tuple(series for series in every if series.statistics.cache_hits or series.statistics.cache_misses)
    yield from (_family(metric, cached) for metric in _CACHE)
    if settings.counter_latencies:
        yield from (_family(_duration_counter(*duration), every) for duration in _DURATIONS)
    if settings.summary_latencies:
        yield from _summaries(every, settings.summary_quantiles)
    if settings.histogram_latencies:
        yield Family(
            "nv_inference_first_response_histogram_ms",
            "histogram",
            "Requests to decoupled models, from arrival to their first response, milliseconds",
            [
                (series.labels, series.statistics.first_response)
                for series in every
                if series.statistics.first_response is not None
            ],
        )


def process_families(cpu: CpuUse | None) -> Iterator[Family]:
    """Yield the families of this process and, where they are on, of the machine."""
    if cpu is not None:
        yield from _cpu_families(cpu)
    yield Family(
        "process_start_time_seconds",
        "gauge",
        "When this process began, seconds since the epoch",
        [({}, round(PROCESS_START, 6))],
    )


def _family(metric: _Metric, every: tuple[ModelSeries, ...]) -> Family:
    return Family(metric.name, metric.kind, metric.text, [(series.labels, metric.value(series)) for series in every])


def _duration_counter(name: str, text: str, duration_ns: Callable[[ModelStatistics], int]) -> _Metric:
    metric = f"nv_inference_{name}_duration_us"
    return _Metric(metric, "counter", text, lambda series: duration_ns(series.statistics) // 1000)


def _batch_families(every: tuple[ModelSeries, ...]) -> Iterator[Family]:
    """Yield executions by batch size, each counted once, so that two runtimes can be compared.

    The nv_* durations are summed per request, and a smaller batch takes more time per row: over all sizes together a
    runtime with less traffic would seem the slower one.
    """
    by_size = [
        ({**series.labels, "batch_size": str(size)}, rows, duration_ns)
        for series in every
        for size, (rows, duration_ns) in sorted(series.statistics.by_batch_size().items())
    ]
    yield Family(
        "fairlead_batch_rows",
        "counter",
        "Rows of executions with at most batch_size rows, and more than half as many",
        [(labels, rows) for labels, rows, _ in by_size],
    )
    yield Family(
        "fairlead_batch_duration_us",
        "counter",
        "Time that these executions took, microseconds",
        [(labels, duration_ns // 1000) for labels, _, duration_ns in by_size],
    )


def _summaries(every: tuple[ModelSeries, ...], quantiles: tuple[float, ...]) -> Iterator[Family]:
    for name, text, _ in _DURATIONS:
        samples: list[tuple[Mapping[str, str], Value]] = [
            (series.labels, SummaryValues(series.statistics.summaries[name], quantiles))
            for series in every
            if series.statistics.summaries is not None
        ]
        yield Family(f"nv_inference_{name}_summary_us", "summary", text, samples)


def _cpu_families(cpu: CpuUse) -> Iterator[Family]:
    for name, text, value in (
        ("nv_cpu_utilization", "Share of the machine's CPU time that was used, 0 to 1", cpu.utilization),
        ("nv_cpu_memory_total_bytes", "Memory of the machine", cpu.memory_total_bytes),
        ("nv_cpu_memory_used_bytes", "Memory of the machine that is in use", cpu.memory_used_bytes),
    ):
        yield Family(name, "gauge", text, [({}, value)])
