"""Execution accelerators of config.pbtxt as ONNX Runtime's providers.

The providers themselves need an NVIDIA GPU; what they are given is checked here, and that a wheel without one says so.
"""

import dataclasses
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from google.protobuf import text_format

from serving_runtime import proto
from serving_runtime.backends.onnx import providers
from serving_runtime.backends.onnx.backend import OnnxRuntimeBackend
from serving_runtime.backends.onnx.session_options import session_options
from serving_runtime.common.errors import ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.engine.catalog import repository
from serving_runtime.engine.loading import load_model
from serving_runtime.engine.loading.settings import LoadSettings
from tests.serving_runtime import onnx_models

THERE = set(onnxruntime.get_available_providers())


def options(config: str, gpu: int | None = None) -> BackendOptions:
    message = text_format.Parse(f'backend: "onnxruntime" {config}', proto.ModelConfig())
    return dataclasses.replace(BackendOptions.from_message(message), gpu=gpu)


def accelerated(kind: str, *names: str, **parameters: str) -> str:
    written = " ".join(f'parameters {{ key: "{key}" value: "{value}" }}' for key, value in parameters.items())
    each = " ".join(f'{kind}_execution_accelerator {{ name: "{name}" {written} }}' for name in names)
    return f"optimization {{ execution_accelerators {{ {each} }} }}"


@pytest.fixture
def every_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ONNX Runtime be the wheel that has them all."""
    found = [providers.TENSORRT, providers.CUDA, providers.OPENVINO]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: [*found, providers.CPU])
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None)


@pytest.mark.feature("C14", "C17")
@pytest.mark.usefixtures("every_provider")
def test_accelerators_come_in_their_order_then_cuda_and_the_cpu_last() -> None:
    both = (
        'optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } '
        'cpu_execution_accelerator { name: "openvino" } } }'
    )
    on_gpu = providers.providers(options(both, gpu=1))
    assert [name for name, _ in on_gpu] == [
        "TensorrtExecutionProvider",
        "CUDAExecutionProvider",
        "OpenVINOExecutionProvider",
        "CPUExecutionProvider",
    ]
    assert [own.get("device_id") for _, own in on_gpu] == ["1", "1", None, None]
    on_cpu = providers.providers(options(both))
    assert [name for name, _ in on_cpu] == ["OpenVINOExecutionProvider", "CPUExecutionProvider"]


@pytest.mark.feature("C15")
@pytest.mark.usefixtures("every_provider")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, {"trt_max_workspace_size": "1073741824"}),
        ({"precision_mode": "FP16"}, {"trt_fp16_enable": "True"}),
        ({"precision_mode": "BF16"}, {"trt_bf16_enable": "True"}),
        (
            {"precision_mode": "INT8", "int8_calibration_table_name": "t", "int8_use_native_calibration_table": "1"},
            {
                "trt_int8_enable": "True",
                "trt_int8_calibration_table_name": "t",
                "trt_int8_use_native_calibration_table": "True",
            },
        ),
        ({"max_workspace_size_bytes": "4294967296"}, {"trt_max_workspace_size": "4294967296"}),
        ({"trt_engine_cache_enable": "true", "trt_profile_min_shapes": "x:1x4"}, {"trt_profile_min_shapes": "x:1x4"}),
        ({"trt_cuda_graph_enable": "0"}, {"trt_cuda_graph_enable": "False"}),
    ],
)
def test_tensorrts_parameters_get_onnx_runtimes_names(given: dict[str, str], expected: dict[str, str]) -> None:
    (_, found), *_ = providers.providers(options(accelerated("gpu", "tensorrt", **given), gpu=0))
    assert found == {"device_id": "0", "trt_max_workspace_size": "1073741824", **expected}


@pytest.mark.feature("C16")
@pytest.mark.usefixtures("every_provider")
def test_cudas_parameters_are_taken_from_the_accelerator_and_in_their_deprecated_form() -> None:
    new = accelerated("gpu", "cuda", gpu_mem_limit="1000", cudnn_conv_algo_search="HEURISTIC", use_tf32="false")
    (name, found), _ = providers.providers(options(new, gpu=0))
    assert (name, found) == (
        "CUDAExecutionProvider",
        {"device_id": "0", "gpu_mem_limit": "1000", "cudnn_conv_algo_search": "HEURISTIC", "use_tf32": "0"},
    )
    old = " ".join(
        f'parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'
        for key, value in {
            "cudnn_conv_algo_search": "2",
            "arena_extend_strategy": "1",
            "gpu_mem_limit": "2000",
            "do_copy_in_default_stream": "0",
        }.items()
    )
    (_, found), _ = providers.providers(options(old, gpu=0))
    assert found == {
        "device_id": "0",
        "cudnn_conv_algo_search": "DEFAULT",
        "arena_extend_strategy": "kSameAsRequested",
        "gpu_mem_limit": "2000",
        "do_copy_in_default_stream": "0",
    }


@pytest.mark.usefixtures("every_provider")
@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        pytest.param(
            accelerated("gpu", "tensorrt", colour="red"),
            "unknown parameter 'colour' is provided for TensorRT Execution Accelerator; known are max_workspace_size",
            id="TensorRT: unknown",
            marks=pytest.mark.feature("C15"),
        ),
        pytest.param(
            accelerated("gpu", "cuda", colour="red"),
            "unknown parameter 'colour' is provided for CUDA Execution Accelerator; known are gpu_mem_limit",
            id="CUDA: unknown",
            marks=pytest.mark.feature("C16"),
        ),
        pytest.param(
            accelerated("cpu", "openvino", colour="red"),
            "unknown parameter 'colour' is provided for OpenVINO Execution Accelerator",
            id="OpenVINO: unknown",
        ),
        pytest.param(
            accelerated("gpu", "openvino"), "unknown Execution Accelerator 'openvino' is requested", id="for the CPU"
        ),
        pytest.param(
            accelerated("cpu", "tensorrt"), "unknown Execution Accelerator 'tensorrt' is requested", id="for GPUs"
        ),
        pytest.param(
            accelerated("gpu", "tensorrt", precision_mode="FP8"),
            "unsupported precision mode 'FP8' is requested; supported are FP32, FP16, BF16, INT8",
            id="a precision",
        ),
        pytest.param(
            accelerated("gpu", "tensorrt", trt_min_subgraph_size="few"),
            "parameter 'trt_min_subgraph_size' must be a whole number, found 'few'",
            id="no number",
        ),
        pytest.param(
            accelerated("gpu", "tensorrt", trt_dla_enable="perhaps"),
            "parameter 'trt_dla_enable' must be 0, 1, true or false, found 'perhaps'",
            id="no boolean",
        ),
        pytest.param(
            accelerated("gpu", "cuda", enable_cuda_graph="1"),
            "parameter 'enable_cuda_graph' is not supported: a captured graph reads its inputs where",
            id="graphs",
        ),
        pytest.param(
            'parameters { key: "cudnn_conv_algo_search" value { string_value: "3" } }',
            "unsupported cudnn_conv_algo_search value '3' is requested; 0 to 2 are supported",
            id="deprecated: no such algorithm",
        ),
        pytest.param(accelerated("gpu", "cuda", "cuda"), "execution_accelerators names 'cuda' twice", id="twice"),
    ],
)
@pytest.mark.parametrize("gpu", [0, None], ids=["on a GPU", "on the CPU"])
def test_what_is_not_known_is_refused_by_name_wherever_it_would_run(
    config: str, sentence: str, gpu: int | None
) -> None:
    with pytest.raises(ModelError) as caught:
        providers.providers(options(config, gpu))
    assert sentence in str(caught.value)


def test_accelerators_are_onnx_runtimes_alone() -> None:
    config = text_format.Parse(f'backend: "pytorch" {accelerated("gpu", "cuda")}', proto.ModelConfig())
    with pytest.raises(ModelError, match="are those of ONNX Runtime; backend 'pytorch' has none"):
        BackendOptions.from_message(config)


@pytest.mark.skipif(providers.CUDA in THERE, reason="this is the wheel for GPUs")
def test_a_wheel_without_a_provider_names_the_one_that_has_it(tmp_path: Path) -> None:
    backend = OnnxRuntimeBackend({})
    file = onnx_models.mlp(tmp_path / "model.onnx", (4, 3))
    assert not backend.runs_on_gpus
    with pytest.raises(ModelError) as caught:
        backend.load(file, options("", gpu=0))
    assert str(caught.value) == (
        "the installed ONNX Runtime has no CUDAExecutionProvider; in an environment of its own run: "
        "pip install 'fairlead[serving-cuda]'"
    )


def test_a_provider_that_onnx_runtime_goes_on_without_refuses_the_load(tmp_path: Path) -> None:
    file = onnx_models.mlp(tmp_path / "model.onnx", (4, 3))
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    with pytest.raises(ModelError, match="cannot use its CUDAExecutionProvider here and would run the model without"):
        providers.check_used(session, [("CUDAExecutionProvider", {}), ("CPUExecutionProvider", {})])


@pytest.mark.parametrize(
    ("directory", "sentence"),
    [
        (None, "trt_extra_plugin_lib_paths 'evil.so' is code; it must be in the folder onnxruntime of"),
        ("own", "trt_extra_plugin_lib_paths 'evil.so' is not a file in "),
    ],
)
def test_libraries_of_plugins_are_the_operators_own(tmp_path: Path, directory: str | None, sentence: str) -> None:
    folder = tmp_path / "m"
    (folder / "1").mkdir(parents=True)
    onnx_models.mlp(folder / "1" / "model.onnx", (4, 3))
    (folder / "config.pbtxt").write_text(accelerated("gpu", "tensorrt", trt_extra_plugin_lib_paths="evil.so"))
    settings = LoadSettings(backend_directory=tmp_path / directory if directory else None)
    plan = load_model.plan(repository.model_folder(folder), settings)
    with pytest.raises(ModelError, match=sentence):
        load_model.open_versions(plan, (1,), settings, {})


@pytest.mark.feature("C17")
@pytest.mark.skipif(
    providers.OPENVINO not in THERE,
    reason="another ONNX Runtime is installed than that of pip install 'fairlead[serving-openvino]'",
)
def test_openvino_runs_a_model_and_answers_as_the_cpu_does(tmp_path: Path) -> None:
    file = onnx_models.mlp(tmp_path / "model.onnx", (16, 64, 3))
    given = np.random.default_rng(0).normal(size=(9, 16)).astype("f4")
    (expected,) = OnnxRuntimeBackend({}).load(file, options("")).run([given])
    model = OnnxRuntimeBackend({}).load(file, options(accelerated("cpu", "openvino")))
    assert model._session.get_providers()[0] == "OpenVINOExecutionProvider"
    np.testing.assert_allclose(model.run([given])[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.feature("C13")
@pytest.mark.parametrize(
    ("level", "name"), [(-1, "BASIC"), (0, "ALL"), (1, "EXTENDED"), (2, "ORT_DISABLE_ALL")], ids=str
)
def test_a_graph_level_is_onnx_runtimes(level: int, name: str) -> None:
    found = session_options({}, options(f"optimization {{ graph {{ level: {level} }} }}").graph_level)
    assert found.graph_optimization_level.name.endswith(name)


@pytest.mark.feature("C13")
def test_a_graph_level_that_there_is_not_is_refused() -> None:
    with pytest.raises(ModelError, match=r"optimization.graph.level must be one of \[-1, 0, 1, 2\], found 7"):
        session_options({}, 7)
