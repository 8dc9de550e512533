"""Model statistics: counters of one model version that only grow, written on the event loop only.

Requests are counted by scheduler.counting alone.

The statistics endpoint and the metrics page are rendered from these; nothing is formatted while a request runs.
Durations are nanoseconds of the monotonic clock. As in Triton's statistics extension, queue and compute durations
are summed per request: a batch of three adds its compute time three times; `batches` adds it once.
"""

import copy
import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from serving_runtime.common.errors import FailureReason
from serving_runtime.telemetry.metrics.histogram import Histogram
from serving_runtime.telemetry.metrics.summary import Summary

OTHERS = 1000
"""From this position on a stream's responses are counted together."""


SUMMARIES = ("request", "queue", "compute_input", "compute_infer", "compute_output")


class BatchTiming(NamedTuple):
    """The moments of one execution, in nanoseconds of the monotonic clock."""

    started: int
    input_done: int
    infer_done: int
    output_done: int


@dataclass(slots=True)
class BatchStatistics:
    """Executions of one batch size."""

    count: int = 0
    input_ns: int = 0
    infer_ns: int = 0
    output_ns: int = 0


@dataclass(slots=True)
class ResponseStatistics:
    """Counts of the responses at one position of a decoupled model's streams (Triton: response_stats).

    Attributes:
        empties, empty_ns: streams that ended here, after their last response.
    """

    successes: int = 0
    infer_ns: int = 0
    output_ns: int = 0
    failures: int = 0
    failure_ns: int = 0
    empties: int = 0
    empty_ns: int = 0
    cancels: int = 0
    cancel_ns: int = 0


class ModelStatistics:
    """Counters of one model version.

    Attributes:
        accepted, finished: requests accepted and completed, all outcomes; their difference is in flight.
        inferences: rows inferred; a request of batch 3 counts 3.
        executions: times the model ran.
        on_finished: called after requests complete; None without a waiting caller.
        last_inference_ms: wall clock, milliseconds since the epoch; 0 before the first.
        cache_hits, cache_misses: of requests to models with a response cache; their times are of the cache's own work.
        A hit is a success, and neither an inference nor an execution.
        displaced: waiting requests that were refused to make room for other callers; they are among the failures.
        responses: of decoupled models, by position in the stream; `OTHERS` for all late ones.
        first_response: of decoupled models, from arrival to the first response.
        summaries: quantiles of the durations by their names, where they are on.
    """

    def __init__(self, first_response: Histogram | None = None) -> None:
        self.summaries: Mapping[str, Summary] | None = None
        self.first_response = first_response
        self.accepted = 0
        self.finished = 0
        self.on_finished: Callable[[], None] | None = None
        self.successes = 0
        self.failures = dict.fromkeys(FailureReason, 0)
        self.failure_ns = 0
        self.displaced = 0
        self.inferences = 0
        self.executions = 0
        self.last_inference_ms = 0
        self.queue_ns = 0
        self.input_ns = 0
        self.infer_ns = 0
        self.output_ns = 0
        self.cache_hits = 0
        self.cache_hit_ns = 0
        self.cache_misses = 0
        self.cache_miss_ns = 0
        self.batches: dict[int, BatchStatistics] = {}
        self.responses: dict[int, ResponseStatistics] = {}
        self.request_latency = Histogram()
        self.queue_latency = Histogram()
        self.compute_latency = Histogram()

    @property
    def inflight(self) -> int:
        return self.accepted - self.finished

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    def by_batch_size(self) -> dict[int, tuple[int, int]]:
        """Return rows and nanoseconds of all executions, by batch size rounded up to a power of two."""
        found: dict[int, tuple[int, int]] = {}
        for rows, batch in self.batches.items():
            size = 1 << max(rows - 1, 0).bit_length()
            rows_before, ns_before = found.get(size, (0, 0))
            duration_ns = batch.input_ns + batch.infer_ns + batch.output_ns
            found[size] = (rows_before + rows * batch.count, ns_before + duration_ns)
        return found

    def record_batch(self, arrived_ns: Sequence[int], rows: int, timing: BatchTiming) -> None:
        """Count one execution that completed `len(arrived_ns)` requests with `rows` rows together."""
        started, input_done, infer_done, output_done = timing
        requests = len(arrived_ns)
        input_ns, infer_ns, output_ns = input_done - started, infer_done - input_done, output_done - infer_done
        self.finished += requests
        self.successes += requests
        self.inferences += rows
        self.executions += 1
        self.last_inference_ms = time.time_ns() // 1_000_000
        self.input_ns += input_ns * requests
        self.infer_ns += infer_ns * requests
        self.output_ns += output_ns * requests
        batch = self.batches.get(rows)
        if batch is None:
            batch = self.batches[rows] = BatchStatistics()
        batch.count += 1
        batch.input_ns += input_ns
        batch.infer_ns += infer_ns
        batch.output_ns += output_ns
        self.compute_latency.observe(output_done - started, requests)
        self.queue_latency.observe_until(started, arrived_ns)
        self.request_latency.observe_until(output_done, arrived_ns)
        self.queue_ns = self.queue_latency.sum_ns
        if self.on_finished is not None:
            self.on_finished()

    def record_answer(self, duration_ns: int, queue_ns: int) -> None:
        """Count one request that a server behind this one answered, after `queue_ns` of the duration in a queue here.

        It is one row and one execution, of no batch size: its rows are not known.
        """
        self.finished += 1
        self.successes += 1
        self.inferences += 1
        self.executions += 1
        self.last_inference_ms = time.time_ns() // 1_000_000
        self.infer_ns += duration_ns - queue_ns
        self.compute_latency.observe(duration_ns - queue_ns)
        self.queue_latency.observe(queue_ns)
        self.queue_ns = self.queue_latency.sum_ns
        self.request_latency.observe(duration_ns)
        if self.on_finished is not None:
            self.on_finished()

    def record_failure(self, reason: FailureReason, duration_ns: int) -> None:
        """Count one request that failed or was cancelled."""
        self.finished += 1
        self.failures[reason] += 1
        self.failure_ns += duration_ns
        if self.on_finished is not None:
            self.on_finished()

    def record_cache_hit(self, looked_up_ns: int, duration_ns: int) -> None:
        """Count one response cache hit."""
        self.cache_hits += 1
        self.cache_hit_ns += looked_up_ns
        self.finished += 1
        self.successes += 1
        self.request_latency.observe(duration_ns)
        if self.on_finished is not None:
            self.on_finished()

    def record_cache_miss(self, looked_up_ns: int) -> None:
        """Count one response cache miss; the request's outcome is counted separately."""
        self.cache_misses += 1
        self.cache_miss_ns += looked_up_ns

    def record_response(self, place: int, infer_ns: int, output_ns: int, since_arrival_ns: int) -> None:
        """Count one response of a decoupled model.

        Args:
            infer_ns: from the start or the response before until it was made.
            output_ns: until it was passed on.
        """
        response = self._response(place)
        response.successes += 1
        response.infer_ns += infer_ns
        response.output_ns += output_ns
        if not place and self.first_response is not None:
            self.first_response.observe(since_arrival_ns)

    def record_stream_end(self, place: int, reason: FailureReason | None, duration_ns: int) -> None:
        """Count the end of a decoupled model's stream; `duration_ns` since its last response."""
        response = self._response(place)
        if reason is None:
            response.empties += 1
            response.empty_ns += duration_ns
        elif reason is FailureReason.CANCELED:
            response.cancels += 1
            response.cancel_ns += duration_ns
        else:
            response.failures += 1
            response.failure_ns += duration_ns

    def _response(self, place: int) -> ResponseStatistics:
        return self.responses.setdefault(min(place, OTHERS), ResponseStatistics())

    def add(self, other: "ModelStatistics") -> None:
        """Add another object's counts of the same version."""
        last_inference_ms = max(self.last_inference_ms, other.last_inference_ms)
        for name, theirs in vars(other).items():
            if name == "on_finished":
                continue
            setattr(self, name, _sum(getattr(self, name), theirs))
        self.last_inference_ms = last_inference_ms


class SummarisedStatistics(ModelStatistics):
    """Counts, and keeps the data for quantiles of the last minute."""

    def __init__(self, first_response: Histogram | None = None) -> None:
        super().__init__(first_response)
        self.summaries: dict[str, Summary] = {name: Summary() for name in SUMMARIES}

    def record_batch(self, arrived_ns: Sequence[int], rows: int, timing: BatchTiming) -> None:
        super().record_batch(arrived_ns, rows, timing)
        summaries, requests = self.summaries, len(arrived_ns)
        summaries["compute_input"].observe(timing.input_done - timing.started, requests)
        summaries["compute_infer"].observe(timing.infer_done - timing.input_done, requests)
        summaries["compute_output"].observe(timing.output_done - timing.infer_done, requests)
        for arrived in arrived_ns:
            summaries["queue"].observe(timing.started - arrived)
            summaries["request"].observe(timing.output_done - arrived)


def _sum(mine: Any, theirs: Any) -> Any:
    """Return the sum of two counts, or of mappings of counts by name; it may be `mine`, never `theirs`."""
    if mine is None or theirs is None:
        return copy.deepcopy(theirs) if mine is None else mine
    if isinstance(mine, dict):
        return {key: _sum(mine.get(key), theirs.get(key)) for key in mine | theirs}
    if isinstance(mine, Histogram | Summary):
        mine.add(theirs)
    elif dataclasses.is_dataclass(mine):
        for field in dataclasses.fields(mine):
            setattr(mine, field.name, _sum(getattr(mine, field.name), getattr(theirs, field.name)))
    else:
        return mine + theirs
    return mine
