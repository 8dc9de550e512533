"""Batch execution for models that take the requests of a batch one by one, and answer or fail each alone."""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, cast

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import BackendError, ServingError
from serving_runtime.common.request import InferRequest
from serving_runtime.scheduler.execution.execution import Execution, Run
from serving_runtime.scheduler.job import Job, OnResult, Result
from serving_runtime.telemetry.statistics import BatchTiming


class RequestJob(Job):
    """A job that its model sees as the original request (backends.base.Asked).

    Attributes:
        request: set before it is submitted.
        explaining: the model is to explain its answer; the result is a tuple of tensors.
    """

    __slots__ = ("_cancelled", "_notify", "explaining", "request")

    def __init__(
        self, arrays: Sequence[Array], rows: int, shape_key: Hashable, on_result: OnResult, arrived_ns: int
    ) -> None:
        super().__init__(arrays, rows, shape_key, on_result, arrived_ns)
        self.request: InferRequest
        self.explaining = False
        self._cancelled = False
        self._notify: Callable[[], None] | None = None

    @property
    def id(self) -> str:
        return self.request.id

    @property
    def inputs(self) -> Sequence[Array]:
        return self.arrays

    @property
    def outputs(self) -> Sequence[str]:
        return self.request.outputs

    @property
    def parameters(self) -> Mapping[str, Any]:
        return self.request.parameters

    def when_cancelled(self, notify: Callable[[], None]) -> None:
        self._notify = notify
        if self._cancelled:
            notify()

    def cancel(self) -> None:
        """Take the job out of its queue, or notify its model of the cancellation."""
        self._cancelled = True
        if self._notify is not None:
            self._notify()
        super().cancel()


class RunRequests(Protocol):
    def __call__(self, requests: Sequence[RequestJob], /) -> Sequence[Result]: ...


Executing: TypeAlias = Callable[[Run, Sequence[Job]], list[Execution]]


def executing(run_requests: RunRequests, explain_requests: RunRequests | None = None) -> Executing:
    """Return a replacement of `execution.execute`; a batch that fails is not run again."""

    def execute(_run: Run, jobs: Sequence[Job]) -> list[Execution]:
        started = time.monotonic_ns()
        requests = cast(Sequence[RequestJob], jobs)
        run = explain_requests if explain_requests is not None and requests[0].explaining else run_requests
        try:
            results = run(requests)
        except ServingError as error:
            return [Execution(jobs, [error] * len(jobs), None)]
        except Exception as error:  # any exception of a model's library is that model's failure, not the server's
            failure = BackendError(f"the model failed: {error}")
            failure.__cause__ = error
            return [Execution(jobs, [failure] * len(jobs), None)]
        ended = time.monotonic_ns()
        return _parted(jobs, results, BatchTiming(started, started, ended, ended))

    return execute


def _parted(jobs: Sequence[Job], results: Sequence[Result], timing: BatchTiming) -> list[Execution]:
    """Return one execution of the answered jobs, and one of the failed jobs, which is counted as such."""
    failed = [isinstance(result, ServingError) for result in results]
    if not any(failed):
        return [Execution(jobs, results, timing)]
    executions = []
    for kind, spent in ((False, timing), (True, None)):
        chosen = [number for number, was in enumerate(failed) if was is kind]
        if chosen:
            executions.append(Execution([jobs[n] for n in chosen], [results[n] for n in chosen], spent))
    return executions
