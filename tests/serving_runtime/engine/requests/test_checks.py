"""Requests are checked against the model before anything runs."""

import numpy as np
import pytest

from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import InvalidArgument
from serving_runtime.common.request import Tensor
from serving_runtime.config.instances import InstanceGroup
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.config.tensors import ModelTensor
from serving_runtime.engine.requests.checks import RequestPlan

FP32, UINT16, BF16 = DATATYPES["FP32"], DATATYPES["UINT16"], DATATYPES["BF16"]


def plan(*, batch: int = 4) -> RequestPlan:
    front = (-1,) if batch else ()
    config = ModelConfig(
        name="m",
        platform="onnxruntime_onnx",
        max_batch_size=batch,
        inputs=(ModelTensor("a", FP32, (2,), None), ModelTensor("b", BF16, (-1, 3), None)),
        outputs=(ModelTensor("y", FP32, (2,), None), ModelTensor("z", FP32, (1,), ())),
        batching=None,
        instance_groups=(InstanceGroup(1),),
    )
    signature = Signature(
        inputs=(TensorSpec("b", BF16, (*front, -1, 3)), TensorSpec("a", FP32, (*front, 2))),
        outputs=(TensorSpec("z", FP32, front), TensorSpec("y", FP32, (*front, 2))),
    )
    return RequestPlan(config, signature)


def a(*shape: int) -> Tensor:
    return Tensor("a", FP32, np.zeros(shape, "f4"))


def b(*shape: int) -> Tensor:
    return Tensor("b", BF16, np.zeros(shape, "u2"))


def test_arrays_come_in_the_files_order_with_rows_and_a_key_of_their_shapes() -> None:
    arrays, rows, key = plan().arrange([a(3, 2), b(3, 5, 3)])
    assert [array.shape for array in arrays] == [(3, 5, 3), (3, 2)]
    assert rows == 3
    assert key == ((5, 3), (2,))


def test_a_model_without_a_batch_dimension_counts_one_row() -> None:
    arrays, rows, _ = plan(batch=0).arrange([b(7, 3), a(2)])
    assert [array.shape for array in arrays] == [(7, 3), (2,)]
    assert rows == 1


@pytest.mark.parametrize(
    ("tensors", "sentence"),
    [
        pytest.param([a(1, 2)], "expected 2 inputs but got 1 for model 'm': input 'b' is missing", id="missing"),
        pytest.param([a(1, 2), Tensor("c", FP32, np.zeros(1))], "unexpected inference input 'c'", id="unknown"),
        pytest.param([a(1, 2), a(1, 2)], "input 'a' is given twice", id="twice in place of another"),
        pytest.param([a(1, 2), b(1, 1, 3), b(1, 1, 3)], "given twice", id="twice beside the others"),
        pytest.param(
            [a(1, 2), Tensor("b", UINT16, np.zeros((1, 1, 3), "u2"))],
            "input 'b' data-type is 'UINT16', but model 'm' expects 'BF16'",
            id="another datatype with the same bytes",
        ),
        pytest.param(
            [a(1, 3), b(1, 1, 3)],
            "unexpected shape for input 'a' for model 'm'. Expected [-1, 2], got [1, 3]",
            id="another fixed dimension",
        ),
        pytest.param([a(1, 2), b(1, 9, 4)], "Expected [-1, -1, 3], got [1, 9, 4]", id="behind a variable dimension"),
        pytest.param([a(2), b(1, 1, 3)], "Expected [-1, 2], got [2]", id="the batch dimension left out"),
        pytest.param([a(), b(1, 1, 3)], "Expected [-1, 2], got []", id="a scalar"),
        pytest.param([a(1, 2, 1), b(1, 1, 3)], "Expected [-1, 2], got [1, 2, 1]", id="one dimension too many"),
        pytest.param(
            [a(5, 2), b(5, 1, 3)],
            "inference request batch-size must be <= 4 for 'm', found 5; send fewer rows, or raise "
            "max_batch_size in its configuration",
            id="too many rows",
        ),
        pytest.param([a(0, 2), b(0, 1, 3)], "<= 4 for 'm' and >= 1, found 0", id="no rows"),
        pytest.param([a(2, 2), b(3, 1, 3)], "input 'b' batch size 3 does not match other inputs' 2", id="uneven rows"),
        pytest.param([a(2, 2), b(0, 1, 3)], "batch size 0 does not match", id="rows in one input only"),
        pytest.param([a(0, 2), b(2, 1, 3)], "and >= 1, found 0", id="rows in the other only"),
    ],
)
@pytest.mark.feature("C1", "C2")
def test_a_request_that_does_not_fit_is_refused(tensors: list[Tensor], sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        plan().arrange(tensors)
    assert sentence in str(caught.value)


def select(names: tuple[str, ...], rows: int) -> tuple[Tensor, ...]:
    made = plan()
    arrays: list[Array] = [np.arange(rows, dtype="f4"), np.zeros((rows, 2), "f4")]
    return made.select(made.selection(names), arrays)


@pytest.mark.feature("C2")
def test_outputs_come_in_the_configs_order_in_the_shapes_that_clients_see() -> None:
    chosen = select((), 3)
    assert [(tensor.name, tensor.array.shape) for tensor in chosen] == [("y", (3, 2)), ("z", (3, 1))]


def test_outputs_come_in_the_order_asked_for() -> None:
    assert [tensor.name for tensor in select(("z", "y"), 1)] == ["z", "y"]


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        pytest.param(
            ("y", "w"), "unexpected inference output 'w' for model 'm'; its outputs are 'y', 'z'", id="unknown"
        ),
        pytest.param(("y", "y"), "requested twice", id="twice"),
    ],
)
def test_outputs_that_cannot_be_given_are_refused(names: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        plan().selection(names)
    assert sentence in str(caught.value)
