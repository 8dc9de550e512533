"""Batch execution: joins the inputs of several jobs, runs the model once, splits the outputs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from serving_runtime.common.datatypes import ABSENT, Array
from serving_runtime.common.errors import BackendError, ServingError
from serving_runtime.scheduler.job import Job, Result
from serving_runtime.telemetry.statistics import BatchTiming

Run: TypeAlias = Callable[[Sequence[Array]], list[Array]]


@dataclass(slots=True)
class Execution:
    """Outcome of running the model once.

    Attributes:
        results: one per job: its own outputs, or its error.
        timing: None where the model failed.
    """

    jobs: Sequence[Job]
    results: Sequence[Result]
    timing: BatchTiming | None


def joined(jobs: Sequence[Job]) -> Sequence[Array]:
    """Return the jobs' inputs as one batch; a single job's unchanged, copied only where a view is misaligned."""
    if len(jobs) == 1:
        return [array if array.flags.aligned else array.copy() for array in jobs[0].arrays]
    columns = zip(*[job.arrays for job in jobs], strict=True)
    return [join(column) for column in columns]


def join(column: Sequence[Array]) -> Array:
    """Return one input of several jobs as one array; either all of them have it or none."""
    return ABSENT if column[0] is ABSENT else np.concatenate(column)


def parted(outputs: list[Array], jobs: Sequence[Job]) -> list[Result]:
    """Return each job's rows of the outputs, as views."""
    if len(jobs) == 1:
        return [outputs]
    total = sum([job.rows for job in jobs])
    for output in outputs:
        if not output.ndim or output.shape[0] != total:
            raise BackendError(f"the model returned shape {list(output.shape)} for a batch of {total}")
    results: list[Result] = []
    start = 0
    for job in jobs:
        end = start + job.rows
        results.append([output[start:end] for output in outputs])
        start = end
    return results


class Joining(NamedTuple):
    """How to join the inputs of several jobs into a batch, and to split its outputs; both may raise."""

    join: Callable[[Sequence[Job]], Sequence[Array]]
    part: Callable[[list[Array], Sequence[Job]], list[Result]]


PLAIN = Joining(joined, parted)


def execute(run: Run, jobs: Sequence[Job], joining: Joining = PLAIN) -> list[Execution]:
    """Return the executions that answered the jobs: one, or one per job when the joint one failed.

    A failed batch is run again job by job: an input that the model rejects must not fail its neighbours, which
    would succeed alone. Never raises; runs in the event loop or in an instance's thread.
    """
    execution = execute_once(run, jobs, joining)
    if execution.timing is None and len(jobs) > 1:
        return [execute_once(run, (job,), joining) for job in jobs]
    return [execution]


def execute_once(run: Run, jobs: Sequence[Job], joining: Joining = PLAIN) -> Execution:
    """Run the jobs together, without a retry where that fails. Never raises."""
    clock = time.monotonic_ns
    started = clock()
    try:
        inputs = joining.join(jobs)
        input_done = clock()
        outputs = run(inputs)
        infer_done = clock()
        results = joining.part(outputs, jobs)
    except ServingError as error:
        return Execution(jobs, [error] * len(jobs), None)
    except Exception as error:  # any exception of a model's library is that model's failure, not the server's
        failure = BackendError(f"the model failed: {error}")
        failure.__cause__ = error
        return Execution(jobs, [failure] * len(jobs), None)
    return Execution(jobs, results, BatchTiming(started, input_done, infer_done, clock()))
