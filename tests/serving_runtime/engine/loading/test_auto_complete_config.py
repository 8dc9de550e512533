"""What a config leaves open comes from the file; where they disagree the load is refused."""

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import ModelConfig
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.engine.loading.auto_complete_config import check_agrees, complete

FP32, INT64 = DATATYPES["FP32"], DATATYPES["INT64"]
BATCHABLE = Signature(
    (TensorSpec("x", FP32, (-1, 4)),), (TensorSpec("y", FP32, (-1, 2)), TensorSpec("n", INT64, (-1,)))
)
FIXED = Signature((TensorSpec("x", FP32, (1, 4)),), (TensorSpec("y", FP32, (1, 2)),))


def completed(text: str, signature: Signature) -> ModelConfig:
    config = text_format.Parse(text, proto.ModelConfig())
    complete(config, signature, name="m", default_max_batch_size=4)
    check_agrees(config, signature)
    return ModelConfig.from_message(config)


@pytest.mark.feature("C24")
def test_a_batchable_model_without_a_config_gets_a_batch_size_and_a_batcher() -> None:
    config = completed("", BATCHABLE)
    assert (config.name, config.max_batch_size, config.instance_count) == ("m", 4, 1)
    assert config.batching is not None
    assert [(tensor.name, tensor.dims) for tensor in config.inputs] == [("x", (4,))]
    assert [(tensor.name, tensor.dims, tensor.reshape) for tensor in config.outputs] == [
        ("y", (2,), None),
        ("n", (1,), ()),
    ]


def test_a_model_with_a_fixed_first_dimension_is_not_batched() -> None:
    config = completed("", FIXED)
    assert (config.max_batch_size, config.batching) == (0, None)
    assert config.inputs[0].dims == (1, 4)


def test_a_batch_size_of_ones_own_brings_no_batcher() -> None:
    config = completed("max_batch_size: 16", BATCHABLE)
    assert (config.max_batch_size, config.batching) == (16, None)


def test_dims_that_name_the_first_dimension_mean_no_batching() -> None:
    only_y = Signature(BATCHABLE.inputs, BATCHABLE.outputs[:1])
    config = completed('input { name: "x" dims: [-1, 4] }', only_y)
    assert (config.max_batch_size, config.batching) == (0, None)


@pytest.mark.parametrize(
    ("shapes", "rows"),
    [
        pytest.param(((-1,),), 0, id="one dimension"),
        pytest.param(((-1,), (-1,)), 0, id="two inputs of one"),
        pytest.param(((-1, 4), (-1,)), 4, id="one beside an input with a batch"),
        pytest.param(((-1, -1),), 4, id="two dimensions"),
    ],
)
def test_inputs_of_rank_1_have_no_batch_dimension(shapes: tuple[tuple[int, ...], ...], rows: int) -> None:
    inputs = tuple(TensorSpec(f"x{number}", FP32, shape) for number, shape in enumerate(shapes))
    found = completed("", Signature(inputs, BATCHABLE.outputs))
    assert found.max_batch_size == rows
    if not rows:
        assert [tensor.dims for tensor in found.inputs] == [spec.shape for spec in inputs]
    assert completed("max_batch_size: 8", Signature(inputs, BATCHABLE.outputs)).max_batch_size == 8


def test_a_scalar_is_served_as_one() -> None:
    found = completed("", Signature((TensorSpec("x", FP32, ()),), (TensorSpec("y", FP32, ()),)))
    assert [(tensor.dims, tensor.reshape) for tensor in (*found.inputs, *found.outputs)] == [((), None)] * 2


def test_a_part_of_the_outputs_may_be_configured() -> None:
    config = completed('max_batch_size: 4 output { name: "y" }', BATCHABLE)
    assert [tensor.name for tensor in config.outputs] == ["y"]


@pytest.mark.parametrize(
    ("config", "signature", "sentence"),
    [
        pytest.param(
            'input { name: "z" data_type: TYPE_FP32 dims: [4] }',
            BATCHABLE,
            "input 'z' is not in the model's file; its inputs are 'x'",
            id="an input that the file does not have",
        ),
        pytest.param(
            'input { name: "x" data_type: TYPE_INT64 dims: [4] }',
            BATCHABLE,
            "input 'x' is TYPE_INT64 in config.pbtxt, but TYPE_FP32 in its file",
            id="another data type",
        ),
        pytest.param(
            'input { name: "x" dims: [5] }',
            BATCHABLE,
            "input 'x' has shape [-1, 5] in config.pbtxt, but [-1, 4] in its file",
            id="another dimension",
        ),
        pytest.param(
            'input { name: "x" dims: [-1] }',
            BATCHABLE,
            "input 'x' has shape [-1, -1] in config.pbtxt, but [-1, 4] in its file",
            id="variable where the file is fixed",
        ),
        pytest.param(
            "max_batch_size: 4",
            FIXED,
            "max_batch_size > 0 needs a variable first dimension",
            id="batching a model that cannot",
        ),
    ],
)
def test_a_config_that_contradicts_the_file_is_refused(config: str, signature: Signature, sentence: str) -> None:
    with pytest.raises(ModelError) as caught:
        completed(config, signature)
    assert sentence in str(caught.value)


def test_an_input_left_out_is_refused() -> None:
    two = Signature((*BATCHABLE.inputs, TensorSpec("z", FP32, (-1, 4))), BATCHABLE.outputs)
    with pytest.raises(ModelError, match="leaves out input 'z'"):
        completed('input { name: "x" }', two)
