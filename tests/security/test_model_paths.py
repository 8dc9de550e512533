"""A model's configuration names no path of the server: neither one to read nor one to write, nor a library to load."""

from collections.abc import Callable
from pathlib import Path

import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.backends.onnx import accelerators
from serving_runtime.backends.onnx.backend import OnnxRuntimeBackend
from serving_runtime.backends.onnx.session_options import session_options
from serving_runtime.backends.openvino import OpenVinoBackend
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.catalog import repository
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.settings import LoadSettings
from tests.serving_runtime import onnx_models

# ONNX Runtime: execution providers TensorRT, CUDA, OpenVINO; session options. OpenVINO: properties.
PATHS = {
    "TensorRT": (
        "trt_engine_cache_path",
        "trt_timing_cache_path",
        "trt_ep_context_file_path",
        "trt_onnx_model_folder_path",
        "trt_dump_subgraphs",
        "trt_dump_ep_context_model",
        "trt_engine_decryption_lib_path",
        "trt_engine_decryption_enable",
        "trt_weight_stripped_engine_enable",
        "trt_preview_features",
        "trt_op_types_to_exclude",
    ),
    "CUDA": ("tunable_op_cache_path", "user_compute_stream", "gpu_external_alloc", "gpu_external_free"),
    "OpenVINO": ("cache_dir", "cache_context", "context", "load_config", "model_priority", "CACHE_DIR"),
}
OF_SESSIONS = (
    "session.optimized_model_external_initializers_file_name",
    "optimized_model_filepath",
    "profile_file_prefix",
    "ep.context_file_path",
    "session.model_external_initializers_file_folder_path",
    "execution_mode\0x",
)
READ: dict[str, Callable[[dict[str, str]], object]] = {
    "TensorRT": lambda parameters: accelerators.tensorrt(parameters, {}),
    "CUDA": lambda parameters: accelerators.cuda(parameters, {}),
    "OpenVINO": lambda parameters: accelerators.openvino(parameters, 1, {}),
}


@pytest.mark.parametrize(("title", "name"), [(title, name) for title, names in PATHS.items() for name in names])
def test_an_accelerators_path_is_refused_by_name(title: str, name: str) -> None:
    with pytest.raises(ModelError, match=f"parameter '{name}'"):
        READ[title]({name: "/etc/cron.d/evil"})


@pytest.mark.parametrize("name", ["int8_calibration_table_name", "trt_engine_cache_prefix"])
@pytest.mark.parametrize("value", ["../../x", "/x", "a/b", "..", ".x", ""])
def test_what_becomes_part_of_a_path_is_a_plain_name(name: str, value: str) -> None:
    with pytest.raises(ModelError, match="must be a plain file name"):
        READ["TensorRT"]({name: value})


@pytest.mark.parametrize("name", OF_SESSIONS)
def test_a_sessions_path_is_refused_by_name(name: str) -> None:
    with pytest.raises(ModelError, match="is unknown to the onnxruntime backend"):
        session_options({name: "/tmp/evil"}, 0)


@pytest.mark.parametrize("name", ["CACHE_DIR", "WEIGHTS_PATH", "EXTENSIONS", "LOG_LEVEL"])
def test_openvinos_path_is_refused_by_name(tmp_path: Path, name: str) -> None:
    message = text_format.Parse(
        f'backend: "openvino" parameters {{ key: "{name}" value {{ string_value: "/tmp/evil" }} }}', proto.ModelConfig()
    )
    with pytest.raises(ModelError, match=f"parameter '{name}' is unknown"):
        OpenVinoBackend({}).load(tmp_path / "model.xml", BackendOptions.from_message(message))


def test_a_model_with_a_cache_of_its_own_choice_is_not_loaded_and_writes_nothing(tmp_path: Path) -> None:
    folder, target = tmp_path / "m", tmp_path / "evil"
    (folder / "1").mkdir(parents=True)
    onnx_models.mlp(folder / "1" / "model.onnx", (4, 3))
    parameters = f'parameters {{ key: "cache_dir" value: "{target}" }}'
    each = f'cpu_execution_accelerator {{ name: "openvino" {parameters} }}'
    (folder / "config.pbtxt").write_text(f"optimization {{ execution_accelerators {{ {each} }} }}")
    settings = LoadSettings()
    plan = load_model.plan(repository.model_folder(folder), settings)
    with pytest.raises(ModelError, match="--backend-config=onnxruntime,openvino_cache_dir=VALUE"):
        load_model.open_versions(plan, (1,), settings, {})
    assert not target.exists()


def test_the_operator_says_where_files_go() -> None:
    operators = {"trt_engine_cache_path": "/cache", "openvino_cache_dir": "/ov"}
    assert OnnxRuntimeBackend(operators)
    found = accelerators.tensorrt({"trt_engine_cache_enable": "1", "trt_timing_cache_enable": "1"}, operators)
    assert (found["trt_engine_cache_enable"], found["trt_engine_cache_path"]) == ("True", "/cache")
    assert "trt_timing_cache_enable" not in found, "no folder was named for it"
    assert "openvino_cache_dir" not in found
    assert accelerators.openvino({}, 1, operators)["cache_dir"] == "/ov"
