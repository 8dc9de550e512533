"""Statistics extension (Triton: statistics extension): its message, made on request."""

from collections.abc import Iterable
from typing import Any

from serving_runtime import proto
from serving_runtime.engine.servables.servable import Servable

_ModelStatisticsResponse = proto.message("inference.ModelStatisticsResponse")


def statistics_message(servables: Iterable[Servable]) -> Any:
    """Return a ModelStatisticsResponse message."""
    response = _ModelStatisticsResponse()
    for servable in servables:
        _fill(response.model_stats.add(), servable)
    return response


def summed(response: Any) -> Any:
    """Return a ModelStatisticsResponse that merges the entries of one model version from several processes."""
    total = _ModelStatisticsResponse()
    known: dict[tuple[str, str], Any] = {}
    for entry in response.model_stats:
        found = known.get((entry.name, entry.version))
        if found is None:
            found = known[entry.name, entry.version] = total.model_stats.add()
            found.CopyFrom(entry)
        else:
            _add(found, entry)
    return total


def _add(total: Any, entry: Any) -> None:
    total.last_inference = max(total.last_inference, entry.last_inference)
    total.inference_count += entry.inference_count
    total.execution_count += entry.execution_count
    _add_durations(total.inference_stats, entry.inference_stats)
    for place, shown in entry.response_stats.items():
        _add_durations(total.response_stats[place], shown)
    batches = {batch.batch_size: batch for batch in total.batch_stats}
    for batch in entry.batch_stats:
        found = batches.get(batch.batch_size)
        if found is None:
            total.batch_stats.add().CopyFrom(batch)
        else:
            _add_durations(found, batch)
    total.batch_stats.sort(key=lambda batch: batch.batch_size)
    for usage, more in zip(total.memory_usage, entry.memory_usage, strict=False):
        usage.byte_size += more.byte_size


def _add_durations(total: Any, entry: Any) -> None:
    """Add up every pair of count and nanoseconds in a message."""
    for field, duration in entry.ListFields():
        if field.message_type is not None:
            found = getattr(total, field.name)
            found.count += duration.count
            found.ns += duration.ns


def _fill(message: Any, servable: Servable) -> None:
    statistics = servable.counts
    message.name, message.version = servable.name, servable.version
    message.last_inference = statistics.last_inference_ms
    message.inference_count = statistics.inferences
    message.execution_count = statistics.executions
    message.memory_usage.add(type="CPU", id=0, byte_size=servable.memory_bytes)
    successes = statistics.successes
    computed = successes - statistics.cache_hits
    durations = message.inference_stats
    for field, count, duration_ns in (
        (durations.success, successes, statistics.request_latency.sum_ns),
        (durations.fail, statistics.failed, statistics.failure_ns),
        (durations.queue, computed, statistics.queue_ns),
        (durations.compute_input, computed, statistics.input_ns),
        (durations.compute_infer, computed, statistics.infer_ns),
        (durations.compute_output, computed, statistics.output_ns),
        (durations.cache_hit, statistics.cache_hits, statistics.cache_hit_ns),
        (durations.cache_miss, statistics.cache_misses, statistics.cache_miss_ns),
    ):
        field.count, field.ns = count, duration_ns
    for place, response in statistics.responses.items():
        shown = message.response_stats[str(place)]
        made_ns = response.infer_ns + response.output_ns
        for field, count, duration_ns in (
            (shown.compute_infer, response.successes, response.infer_ns),
            (shown.compute_output, response.successes, response.output_ns),
            (shown.success, response.successes, made_ns),
            (shown.fail, response.failures, response.failure_ns),
            (shown.empty_response, response.empties, response.empty_ns),
            (shown.cancel, response.cancels, response.cancel_ns),
        ):
            field.count, field.ns = count, duration_ns
    for size in sorted(statistics.batches):
        batch = statistics.batches[size]
        entry = message.batch_stats.add(batch_size=size)
        for field, duration_ns in (
            (entry.compute_input, batch.input_ns),
            (entry.compute_infer, batch.infer_ns),
            (entry.compute_output, batch.output_ns),
        ):
            field.count, field.ns = batch.count, duration_ns
