"""The metrics page in Prometheus' text format, rendered from the statistics when it is asked for.

Names, labels and meaning of nv_inference_* are Triton's; the fairlead_* ones are ours, because Triton has no latency
histogram from which a quantile over several replicas could be computed.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from serving_runtime.telemetry.histogram import EDGES_US, Histogram
from serving_runtime.telemetry.statistics import ModelStatistics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

PROCESS_START = time.time()


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """One model version's statistics and what its queue holds now."""

    model: str
    version: str
    statistics: ModelStatistics
    pending: int

    @property
    def labels(self) -> str:
        return f'model="{_escaped(self.model)}",version="{_escaped(self.version)}"'


@dataclass(frozen=True, slots=True)
class _Single:
    """A metric with one value per model version."""

    name: str
    kind: str
    text: str
    value: Callable[[ModelSeries], int]


_SINGLES = (
    _Single(
        "nv_inference_request_success",
        "counter",
        "Requests answered without error",
        lambda series: series.statistics.successes,
    ),
    _Single("nv_inference_count", "counter", "Rows inferred", lambda series: series.statistics.inferences),
    _Single("nv_inference_exec_count", "counter", "Times the model ran", lambda series: series.statistics.executions),
    _Single(
        "nv_inference_request_duration_us",
        "counter",
        "Time of successful requests, microseconds",
        lambda series: series.statistics.request_latency.sum_ns // 1000,
    ),
    _Single(
        "nv_inference_queue_duration_us",
        "counter",
        "Time that requests waited, microseconds",
        lambda series: series.statistics.queue_ns // 1000,
    ),
    _Single(
        "nv_inference_compute_input_duration_us",
        "counter",
        "Time to join inputs, microseconds",
        lambda series: series.statistics.input_ns // 1000,
    ),
    _Single(
        "nv_inference_compute_infer_duration_us",
        "counter",
        "Time the model ran, microseconds",
        lambda series: series.statistics.infer_ns // 1000,
    ),
    _Single(
        "nv_inference_compute_output_duration_us",
        "counter",
        "Time to part outputs, microseconds",
        lambda series: series.statistics.output_ns // 1000,
    ),
    _Single(
        "nv_inference_pending_request_count",
        "gauge",
        "Requests in the queue",
        lambda series: series.pending,
    ),
    _Single(
        "fairlead_inflight_requests",
        "gauge",
        "Requests accepted and not yet answered",
        lambda series: series.statistics.inflight,
    ),
)

_HISTOGRAMS: tuple[tuple[str, str, Callable[[ModelStatistics], Histogram]], ...] = (
    (
        "fairlead_inference_request_duration_us",
        "Successful requests from arrival to answer, microseconds",
        lambda statistics: statistics.request_latency,
    ),
    (
        "fairlead_inference_queue_duration_us",
        "Successful requests, time in the queue, microseconds",
        lambda statistics: statistics.queue_latency,
    ),
    (
        "fairlead_inference_compute_duration_us",
        "Successful requests, time of their execution, microseconds",
        lambda statistics: statistics.compute_latency,
    ),
)


def render(series: Iterable[ModelSeries]) -> str:
    """Return the metrics page."""
    return "\n".join(_lines(tuple(series))) + "\n"


def _lines(all_series: tuple[ModelSeries, ...]) -> Iterator[str]:
    for single in _SINGLES:
        yield f"# HELP {single.name} {single.text}"
        yield f"# TYPE {single.name} {single.kind}"
        for series in all_series:
            yield f"{single.name}{{{series.labels}}} {single.value(series)}"
    yield "# HELP nv_inference_request_failure Requests answered with an error, by reason"
    yield "# TYPE nv_inference_request_failure counter"
    for series in all_series:
        for reason, count in series.statistics.failures.items():
            yield f'nv_inference_request_failure{{{series.labels},reason="{reason.value}"}} {count}'
    for name, text, histogram in _HISTOGRAMS:
        yield f"# HELP {name} {text}"
        yield f"# TYPE {name} histogram"
        for series in all_series:
            yield from _histogram_lines(name, series.labels, histogram(series.statistics))
    yield "# HELP process_start_time_seconds When this process began, seconds since the epoch"
    yield "# TYPE process_start_time_seconds gauge"
    yield f"process_start_time_seconds {PROCESS_START:.6f}"


def _histogram_lines(name: str, labels: str, histogram: Histogram) -> Iterator[str]:
    total = 0
    for edge, count in zip(EDGES_US, histogram.counts, strict=False):
        total += count
        yield f'{name}_bucket{{{labels},le="{edge}"}} {total}'
    total += histogram.counts[-1]
    yield f'{name}_bucket{{{labels},le="+Inf"}} {total}'
    yield f"{name}_sum{{{labels}}} {histogram.sum_ns // 1000}"
    yield f"{name}_count{{{labels}}} {total}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
