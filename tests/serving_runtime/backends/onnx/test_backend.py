"""ONNX Runtime models: every datatype in and out, and one sentence for what cannot be served."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from serving_runtime.backends.onnx.backend import OnnxRuntimeBackend
from serving_runtime.backends.onnx.file import read_header
from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import BackendError, InvalidArgument, ModelError
from serving_runtime.config.model import BackendOptions
from tests.serving_runtime import onnx_models

ONNX_TYPES = {
    "BOOL": TensorProto.BOOL,
    "UINT8": TensorProto.UINT8,
    "UINT16": TensorProto.UINT16,
    "UINT32": TensorProto.UINT32,
    "UINT64": TensorProto.UINT64,
    "INT8": TensorProto.INT8,
    "INT16": TensorProto.INT16,
    "INT32": TensorProto.INT32,
    "INT64": TensorProto.INT64,
    "FP16": TensorProto.FLOAT16,
    "BF16": TensorProto.BFLOAT16,
    "FP32": TensorProto.FLOAT,
    "FP64": TensorProto.DOUBLE,
    "BYTES": TensorProto.STRING,
}


def load(file: Path, **parameters: str):
    return OnnxRuntimeBackend({}).load(file, BackendOptions(parameters))


@pytest.mark.parametrize("name", DATATYPES)
def test_every_datatype_passes_through_unchanged(tmp_path: Path, name: str) -> None:
    datatype = DATATYPES[name]
    model = load(onnx_models.identity(tmp_path / "model.onnx", ONNX_TYPES[name], ("N", 2)))
    spec = model.signature.inputs[0]
    assert (spec.name, spec.datatype, spec.shape) == ("x", datatype, (-1, 2))
    if name == "BYTES":
        given = np.array([[b"a\x00b", "é".encode()]], dtype=object)
    else:
        given = np.array([[0, 1]]).astype(datatype.dtype)
    (output,) = model.run([given])
    assert output.dtype == datatype.dtype
    assert output.tolist() == given.tolist()


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        pytest.param(b"", "model.onnx is not an ONNX model: the file is empty", id="an empty file"),
        pytest.param(b"PK\x03\x04 a zip file" * 10, "model.onnx is not an ONNX model", id="another format"),
        pytest.param(b"just some text\n", "model.onnx is not an ONNX model", id="text"),
        pytest.param(b"\x08\x08\x3a\xff\xff\xff\xff\x7f", "in the middle of a field", id="a length beyond the file"),
    ],
)
def test_a_file_that_is_no_model(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "model.onnx").write_bytes(content)
    with pytest.raises(ModelError) as caught:
        load(tmp_path / "model.onnx")
    assert sentence in str(caught.value)


def test_a_model_cut_in_half_is_no_model(tmp_path: Path) -> None:
    file = onnx_models.mlp(tmp_path / "model.onnx")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(ModelError, match=r"model\.onnx is not an ONNX model"):
        load(file)


def test_an_opset_from_the_future_is_named_with_the_newest_supported(tmp_path: Path) -> None:
    file = onnx_models.identity(tmp_path / "model.onnx", opset=99)
    with pytest.raises(ModelError, match=r"^model\.onnx uses opset 99 of ai\.onnx; this runtime supports up to 2\d$"):
        load(file)


def test_an_ir_version_from_the_future_is_named(tmp_path: Path) -> None:
    model = onnx.load(str(onnx_models.identity(tmp_path / "model.onnx")))
    model.ir_version = 99
    onnx.save(model, str(tmp_path / "model.onnx"))
    with pytest.raises(ModelError, match=r"^model\.onnx uses ONNX IR version 99; this runtime supports up to \d+$"):
        load(tmp_path / "model.onnx")


def test_an_output_that_v2_cannot_carry_is_named(tmp_path: Path) -> None:
    node = helper.make_node("SequenceConstruct", ["x"], ["y"])
    graph = helper.make_graph(
        [node],
        "test",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, [1])],
    )
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(tmp_path / "m.onnx")
    )
    with pytest.raises(ModelError, match=r"output 'y' has type seq\(tensor\(float\)\), which the V2 protocol cannot"):
        load(tmp_path / "m.onnx")


def test_an_unknown_operator_gives_the_reason_without_source_places(tmp_path: Path) -> None:
    node = helper.make_node("Frobnicate", ["x"], ["y"])
    tensor = ("N", 2)
    file = onnx_models.save(
        tmp_path / "model.onnx", [node], [("x", TensorProto.FLOAT, tensor)], [("y", TensorProto.FLOAT, tensor)]
    )
    with pytest.raises(ModelError) as caught:
        load(file)
    assert "Frobnicate" in str(caught.value)
    assert "onnxruntime_src" not in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        pytest.param("intra_op_threads", "2", "parameter 'intra_op_threads' is unknown", id="a misspelt parameter"),
        pytest.param("intra_op_thread_count", "many", "must be a number from 0 to 1024, found 'many'", id="no number"),
        pytest.param("execution_mode", "7", "must be a number from 0 to 1, found '7'", id="out of range"),
    ],
)
def test_a_wrong_parameter_refuses_the_load(tmp_path: Path, key: str, value: str, sentence: str) -> None:
    file = onnx_models.identity(tmp_path / "model.onnx")
    with pytest.raises(ModelError) as caught:
        load(file, **{key: value})
    assert sentence in str(caught.value)


@pytest.mark.feature("C18")
def test_the_documented_parameters_are_taken(tmp_path: Path) -> None:
    model = load(
        onnx_models.identity(tmp_path / "model.onnx"),
        **{
            "intra_op_thread_count": "2",
            "inter_op_thread_count": "1",
            "execution_mode": "1",
            "enable_mem_arena": "1",
            "enable_mem_pattern": "0",
            "memory.enable_memory_arena_shrinkage": "cpu:0",
            "session.use_device_allocator_for_initializers": "1",
        },
    )
    assert model.run([np.ones((1, 4), "f4")])[0].tolist() == [[1, 1, 1, 1]]


def test_an_unknown_backend_setting_is_refused() -> None:
    with pytest.raises(ModelError, match="--backend-config=onnxruntime,threads: unknown setting"):
        OnnxRuntimeBackend({"threads": "2"})


def test_a_failing_run_is_the_models_error(tmp_path: Path) -> None:
    model = load(onnx_models.picky(tmp_path / "model.onnx"))
    with pytest.raises(BackendError, match=r"the model failed: .*out of data bounds"):
        model.run([np.array([[9]], "i8")])


def test_bytes_that_are_no_text_are_the_clients_error(tmp_path: Path) -> None:
    model = load(onnx_models.identity(tmp_path / "model.onnx", TensorProto.STRING, ("N", 1)))
    with pytest.raises(InvalidArgument, match="not UTF-8"):
        model.run([np.array([[b"\xff"]], dtype=object)])


def test_the_header_names_all_operator_sets(tmp_path: Path) -> None:
    model = onnx.load(str(onnx_models.mlp(tmp_path / "model.onnx")))
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    onnx.save(model, str(tmp_path / "model.onnx"))
    header = read_header(tmp_path / "model.onnx")
    assert header.opsets == {"ai.onnx": 17, "ai.onnx.ml": 3}
    assert header.ir_version == 8
