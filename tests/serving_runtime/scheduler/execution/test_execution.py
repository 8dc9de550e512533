"""Batches are joined and parted by rows, and fail apart."""

from collections.abc import Sequence

import numpy as np
import pytest

from serving_runtime.common.datatypes import Array
from serving_runtime.common.errors import BackendError
from serving_runtime.scheduler.execution.execution import execute
from serving_runtime.scheduler.job import Job


def job(*values: float) -> Job:
    return Job([np.array(values, "f4").reshape(-1, 1)], len(values), None, lambda _result: None, 0)


def double_unless_negative(inputs: Sequence[Array]) -> list[Array]:
    if (inputs[0] < 0).any():
        raise ValueError("negative")
    return [inputs[0] * 2, inputs[0] + 1]


def values(result: object) -> list[list[float]]:
    assert isinstance(result, list)
    return [output.ravel().tolist() for output in result]


def test_each_job_gets_its_own_rows() -> None:
    (execution,) = execute(double_unless_negative, [job(1), job(2, 3), job(4)])
    assert [values(result) for result in execution.results] == [[[2], [2]], [[4, 6], [3, 4]], [[8], [5]]]
    assert execution.timing is not None
    assert list(execution.timing) == sorted(execution.timing)


def test_a_batch_that_fails_is_run_again_one_by_one() -> None:
    good, bad, other = job(1), job(-1), job(2, 3)
    executions = execute(double_unless_negative, [good, bad, other])
    assert [list(execution.jobs) for execution in executions] == [[good], [bad], [other]]
    assert values(executions[0].results[0]) == [[2], [2]]
    assert isinstance(executions[1].results[0], BackendError)
    assert executions[1].timing is None
    assert values(executions[2].results[0]) == [[4, 6], [3, 4]]


@pytest.mark.parametrize(
    "output",
    [
        pytest.param(np.zeros((1, 1)), id="too few rows"),
        pytest.param(np.zeros((9, 1)), id="too many rows"),
        pytest.param(np.zeros(()), id="no rows at all"),
    ],
)
def test_outputs_that_cannot_be_parted_fail_instead_of_mixing_rows(output: Array) -> None:
    def run(inputs: Sequence[Array]) -> list[Array]:
        return [output] if len(inputs[0]) > 1 else [inputs[0]]

    executions = execute(run, [job(1), job(2)])
    assert [values(execution.results[0]) for execution in executions] == [[[1]], [[2]]]


def test_a_misaligned_view_is_handed_on_aligned() -> None:
    misaligned = np.frombuffer(b"\0" + np.array([1, 2], "f4").tobytes(), "f4", 2, 1).reshape(2, 1)
    assert not misaligned.flags.aligned
    seen: list[bool] = []

    def run(inputs: Sequence[Array]) -> list[Array]:
        seen.append(bool(inputs[0].flags.aligned))
        return list(inputs)

    (execution,) = execute(run, [Job([misaligned], 2, None, lambda _result: None, 0)])
    assert seen == [True]
    assert values(execution.results[0]) == [[1, 2]]
