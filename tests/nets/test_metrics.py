"""Metrics stay: names, types, labels and edges, of control plane and runtime."""

from collections.abc import Iterator
from typing import Any

from prometheus_client import REGISTRY
from prometheus_client.metrics import MetricWrapperBase

from clusters.services import watch
from control_plane import beat
from control_plane.monitoring import telemetry
from control_plane.monitoring.collector import ControlPlaneCollector
from deployments import tasks
from deployments.reconcile import service_counters
from deployments.turns import controller, sweep
from integrations import shared_buckets
from integrations.clusters.kubernetes.waker import waker
from serving_runtime.common.errors import FailureReason
from serving_runtime.devices.gpu import Gpu
from serving_runtime.devices.nvml import Reading
from serving_runtime.telemetry.metrics.cpu import CpuMeter
from serving_runtime.telemetry.metrics.families import Family, ModelSeries, families
from serving_runtime.telemetry.metrics.gpus import gpu_families
from serving_runtime.telemetry.metrics.histogram import Histogram
from serving_runtime.telemetry.metrics.settings import MetricsSettings
from serving_runtime.telemetry.metrics.text import samples
from serving_runtime.telemetry.statistics import BatchTiming, SummarisedStatistics
from serving_runtime.telemetry.tap.tap import TapCounts
from serving_runtime.telemetry.tap.taps import LOGGER_METRIC, TAP_METRIC, events_family
from tests.nets._support.recording import check
from usage.services import collector

REGISTERED = (beat, telemetry, watch, tasks, controller, sweep, service_counters, shared_buckets, collector, waker)
"""Modules whose import registers metrics."""


def of_control_plane() -> Iterator[str]:
    """Yield a line for each metric of web, worker, beat, watcher, usage collector and waker."""
    known: Any = REGISTRY._collector_to_names
    for metric in known:
        if isinstance(metric, MetricWrapperBase) and metric._name.startswith("fairlead_"):
            edges = getattr(metric, "_kwargs", {}).get("buckets", "")
            yield f"{metric._type} {metric._name} {list(metric._labelnames)} {edges}".rstrip()
    for family in ControlPlaneCollector().describe():
        yield f"{family.type} {family.name} {list(family._labelnames)}"


def of_runtime() -> Iterator[str]:
    """Yield the metrics of a model of which everything was counted once, as the page shows them, without values."""
    statistics = SummarisedStatistics(first_response=Histogram())
    statistics.record_batch([0], 3, BatchTiming(1, 2, 3, 4))
    statistics.record_failure(FailureReason.CANCELED, 1)
    statistics.record_cache_hit(1, 1)
    statistics.record_cache_miss(1)
    series = ModelSeries("digits", "1", statistics, 0, {"tag": "of-its-config"})
    settings = MetricsSettings(summary_latencies=True, histogram_latencies=True)
    meter = CpuMeter()
    every: list[Family] = [
        *families([series], settings, meter.use),
        *gpu_families([Reading(Gpu("GPU-a", "H100", 1), 0, 0, 0, 0, 0, 0)]),
        *(events_family(name, TapCounts()) for name in (TAP_METRIC, LOGGER_METRIC)),
    ]
    for family in every:
        yield f"{family.kind} {family.name}"
        yield from sorted({f"  {line.rpartition(' ')[0]}" for line in samples(family).decode().splitlines()})


def test_metrics_of_the_control_plane_are_as_they_were() -> None:
    assert REGISTERED
    check("metrics_of_the_control_plane.txt", "a metric", sorted(of_control_plane()))


def test_metrics_of_the_runtime_are_as_they_were() -> None:
    check("metrics_of_the_runtime.txt", "a metric", of_runtime())
