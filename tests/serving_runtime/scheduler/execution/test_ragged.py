"""What is made of the shapes of a batch, and how its flat output is parted, as tables."""

import numpy as np
import pytest

from serving_runtime.common.errors import BackendError
from serving_runtime.config.ragged import BatchInputKind
from serving_runtime.scheduler.execution.ragged import batch_input, scatter

pytestmark = pytest.mark.feature("C21")

SHAPES = [(1, 3), (2, 2), (1, 0), (1, 4)]


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        (BatchInputKind.ELEMENT_COUNT, [3, 4, 0, 4]),
        (BatchInputKind.ACCUMULATED_ELEMENT_COUNT, [3, 7, 7, 11]),
        (BatchInputKind.ACCUMULATED_ELEMENT_COUNT_WITH_ZERO, [0, 3, 7, 7, 11]),
        (BatchInputKind.MAX_ELEMENT_COUNT_AS_SHAPE, [0, 0, 0, 0]),
        (BatchInputKind.ITEM_SHAPE, [[3], [2], [2], [0], [4]]),
        (BatchInputKind.ITEM_SHAPE_FLATTEN, [3, 2, 2, 0, 4]),
    ],
)
@pytest.mark.parametrize("dtype", ["<i4", "<f4"])
def test_every_kind_of_batch_input(kind: BatchInputKind, found: list[object], dtype: str) -> None:
    array = batch_input(kind, SHAPES, np.dtype(dtype))
    assert array.tolist() == found
    assert array.dtype == np.dtype(dtype)


def test_item_shapes_leave_out_the_batch_dimension() -> None:
    shapes = [(2, 3, 5), (1, 4, 6)]
    assert batch_input(BatchInputKind.ITEM_SHAPE, shapes, np.dtype("i4")).tolist() == [[3, 5], [3, 5], [4, 6]]
    assert batch_input(BatchInputKind.ITEM_SHAPE_FLATTEN, shapes, np.dtype("i4")).tolist() == [3, 5, 3, 5, 4, 6]


def test_a_flat_output_is_parted_by_the_shapes_of_the_requests() -> None:
    parts = scatter(np.arange(11), SHAPES)
    assert [part.tolist() for part in parts] == [[[0, 1, 2]], [[3, 4], [5, 6]], [[]], [[7, 8, 9, 10]]]
    with pytest.raises(BackendError, match="returned 10 elements for a batch of 11"):
        scatter(np.arange(10), SHAPES)
