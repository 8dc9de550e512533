"""OpenVINO: TensorFlow's files, datatypes, and what it is told about threads and precision."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from serving_runtime.backends import registry
from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import ModelError
from serving_runtime.config import text
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.catalog import repository
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.settings import LoadSettings
from tests.serving_runtime import onnx_models
from tests.serving_runtime._support.conformance import FIXTURES

openvino = pytest.importorskip("openvino", reason="openvino is not installed: pip install 'fairlead[openvino]'")

SAVED_MODEL = FIXTURES / "layers.savedmodel"


def load(file: Path, config: str = "", **parameters: str):
    onnx_models.configure(file.parent.parent, config)
    options = BackendOptions.from_message(text.read(file.parent.parent / "config.pbtxt", file.parent.parent.name))
    return registry.find("openvino", None, parameters).load(file, options)


def opened(folder: Path):
    plan = load_model.plan(repository.model_folder(folder), LoadSettings())
    return load_model.open_versions(plan, (1,), LoadSettings(), {})[1]


@pytest.mark.feature("B3")
@pytest.mark.parametrize(
    ("place", "source", "config"),
    [
        pytest.param("1/model.savedmodel", SAVED_MODEL, 'platform: "tensorflow_savedmodel"', id="Triton's SavedModel"),
        pytest.param("1/model.savedmodel", SAVED_MODEL, "", id="a SavedModel told by its folder's name"),
        pytest.param("1", SAVED_MODEL, "", id="TensorFlow Serving's layout"),
        pytest.param(
            "1/model.graphdef",
            FIXTURES / "layers.graphdef",
            'platform: "tensorflow_graphdef" output { name: "Identity" }',
            id="a frozen GraphDef, its output chosen by name",
        ),
    ],
)
def test_tensorflow_models_answer_what_tensorflow_answers(
    tmp_path: Path, place: str, source: Path, config: str
) -> None:
    folder = onnx_models.configure(tmp_path / "layers", config)
    if source.is_dir():
        shutil.copytree(source, folder / place)
    else:
        (folder / "1").mkdir()
        shutil.copy(source, folder / place)
    found = opened(folder)
    assert found.message.backend == "openvino"
    assert [tensor.name for tensor in found.config.inputs] == ["x"]
    assert [tensor.name for tensor in found.config.outputs] == ["Identity" if "Identity" in config else "y"]
    told = np.load(FIXTURES / "layers.npz")
    np.testing.assert_allclose(found.model.run([told["given"]])[0], told["expected"], atol=1e-6)


def test_a_model_may_have_several_inputs(tmp_path: Path) -> None:
    rows = (TensorProto.FLOAT, ("N", 2))
    nodes = [helper.make_node("Sub", ["a", "b"], ["y"])]
    file = onnx_models.save(tmp_path / "m" / "1" / "model.onnx", nodes, [("a", *rows), ("b", *rows)], [("y", *rows)])
    (answer,) = load(file).run([np.full((3, 2), 5, "f4"), np.ones((3, 2), "f4")])
    assert answer.tolist() == [[4, 4]] * 3


@pytest.mark.parametrize("name", ["BOOL", "UINT8", "INT8", "INT32", "INT64", "FP16", "FP32", "FP64"])
def test_datatypes_pass_through_unchanged(tmp_path: Path, name: str) -> None:
    kinds = {"BOOL": "BOOL", "FP16": "FLOAT16", "FP32": "FLOAT", "FP64": "DOUBLE"}
    file = onnx_models.identity(
        tmp_path / "m" / "1" / "model.onnx", TensorProto.DataType.Value(kinds.get(name, name)), ("N", 2)
    )
    model = load(file)
    assert model.signature.inputs[0].datatype is DATATYPES[name]
    given = np.array([[0, 1], [1, 1]]).astype(DATATYPES[name].dtype)
    (answer,) = model.run([given])
    assert (answer.dtype, answer.tolist()) == (given.dtype, given.tolist())


def test_a_type_that_it_does_not_serve_is_named(tmp_path: Path) -> None:
    file = onnx_models.identity(tmp_path / "m" / "1" / "model.onnx", TensorProto.STRING, ("N", 2))
    with pytest.raises(ModelError, match=r"model\.onnx: input 'x' has type string, which this backend does not serve"):
        load(file)


def test_an_instance_has_a_thread_and_a_stream_unless_the_config_says_otherwise(tmp_path: Path) -> None:
    file = onnx_models.mlp(tmp_path / "m" / "1" / "model.onnx")

    def compiled(config: str, **settings: str) -> tuple[int, int, str]:
        model = load(file, config, **settings)._compiled
        names = ("NUM_STREAMS", "INFERENCE_NUM_THREADS", "INFERENCE_PRECISION_HINT")
        streams, threads, precision = (model.get_property(name) for name in names)
        return int(streams), threads, precision.get_type_name()

    assert compiled("") == (1, 1, "f32")
    assert compiled("instance_group { count: 2 kind: KIND_CPU }") == (2, 2, "f32")
    told = 'parameters { key: "INFERENCE_NUM_THREADS" value { string_value: "2" } }'
    assert compiled(told) == (1, 2, "f32")
    assert compiled("", INFERENCE_NUM_THREADS="2") == (1, 2, "f32")


def test_a_device_that_is_not_the_cpu_is_refused(tmp_path: Path) -> None:
    file = onnx_models.mlp(tmp_path / "m" / "1" / "model.onnx")
    with pytest.raises(ModelError, match="parameter 'TARGET_DEVICE' must be one of CPU, found 'GPU'"):
        load(file, 'parameters { key: "TARGET_DEVICE" value { string_value: "GPU" } }')


def test_an_operation_that_it_has_not_is_told_in_one_line(tmp_path: Path) -> None:
    node = onnx_models.helper.make_node("Frobnicate", ["x"], ["y"])
    tensors = [("x", TensorProto.FLOAT, ("N", 2))], [("y", TensorProto.FLOAT, ("N", 2))]
    file = onnx_models.save(tmp_path / "m" / "1" / "model.onnx", [node], *tensors)
    with pytest.raises(ModelError, match="Frobnicate") as caught:
        load(file)
    assert "\n" not in str(caught.value)


def test_its_makers_learn_of_no_import(tmp_path: Path) -> None:
    """Their package keeps a file in the home folder and reports the import to them, where it can."""
    look = "import serving_runtime.backends.openvino, sys; print(sys.modules['openvino_telemetry'])"
    variables = {**os.environ, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", look], env=variables, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("None\n", "")
    assert list(tmp_path.iterdir()) == []
