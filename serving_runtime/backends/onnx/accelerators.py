"""Execution provider parameters: from config.pbtxt's names and values to ONNX Runtime's. Pure.

Only the operator may set parameters that name a path of the server, or make a provider write files (`OPERATORS`): the
author of a model would read and write with the server's rights.

Triton: ONNX Runtime backend, TensorRT optimization, CUDA execution provider optimization, deprecated parameters.
ONNX Runtime: execution providers CUDA, TensorRT, OpenVINO.
"""

import re
from collections.abc import Callable, Mapping

from serving_runtime.common.errors import ModelError

Reader = Callable[[str, str], str]


def read(parameters: Mapping[str, str], known: Mapping[str, tuple[str, Reader]], title: str) -> dict[str, str]:
    """Return an accelerator's parameters under ONNX Runtime's names; raises ModelError for an unknown one.

    Args:
        known: ONNX Runtime's name of a parameter, and the function that checks and writes its value.
    """
    options: dict[str, str] = {}
    for key, value in parameters.items():
        if setting := _SETTING_OF.get((title, key)):
            raise ModelError(
                f"parameter '{key}' of {title} Execution Accelerator says where the server reads or writes files, so "
                f"its operator sets it for all models, by --backend-config=onnxruntime,{setting}=VALUE"
            )
        if key not in known:
            raise ModelError(
                f"unknown parameter '{key}' is provided for {title} Execution Accelerator; known are {', '.join(known)}"
            )
        name, written = known[key]
        options[name] = written(key, value)
    return options


def tensorrt(parameters: Mapping[str, str], operators: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the TensorRT provider but for its device; raises ModelError.

    Args:
        operators: the server's --backend-config; without a folder of the operator's nothing is cached.
    """
    given = dict(parameters)
    precision = given.pop("precision_mode", "FP32")
    if precision not in _PRECISIONS:
        raise ModelError(
            f"unsupported precision mode '{precision}' is requested; supported are {', '.join(_PRECISIONS)}"
        )
    options = read(given, _TENSORRT, "TensorRT")
    options.setdefault("trt_max_workspace_size", str(1 << 30))
    for what in ("engine", "timing"):
        if f"trt_{what}_cache_path" not in operators:
            options.pop(f"trt_{what}_cache_enable", None)
    options |= {key: value for key, value in operators.items() if key in OPERATORS and key != _OPENVINO_CACHE}
    return options | ({_PRECISIONS[precision]: "True"} if _PRECISIONS[precision] else {})


def cuda(parameters: Mapping[str, str], deprecated: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the CUDA provider but for its device; raises ModelError.

    Args:
        deprecated: parameters of the model itself, of which those in CUDA_PARAMETERS are the provider's.
    """
    options = read(parameters, _CUDA, "CUDA")
    options |= {key: _DEPRECATED[key](key, value) for key, value in deprecated.items() if key in _DEPRECATED}
    return options


def openvino(parameters: Mapping[str, str], instances: int, operators: Mapping[str, str]) -> dict[str, str]:
    """Return the options of the OpenVINO provider, with a thread for each instance; raises ModelError."""
    threads = {"num_of_threads": str(instances), "num_streams": str(instances)}
    cache = {"cache_dir": operators[_OPENVINO_CACHE]} if _OPENVINO_CACHE in operators else {}
    return {"device_type": "CPU", **threads, **read(parameters, _OPENVINO, "OpenVINO"), **cache}


def _flag(true: str, false: str) -> Reader:
    def written(key: str, value: str) -> str:
        if value.lower() not in ("1", "true", "0", "false"):
            raise ModelError(f"parameter '{key}' must be 0, 1, true or false, found '{value}'")
        return true if value.lower() in ("1", "true") else false

    return written


def _integer(key: str, value: str) -> str:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal()):
        raise ModelError(f"parameter '{key}' must be a whole number, found '{value}'")
    return value


def _plain_name(key: str, value: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]*", value):
        raise ModelError(f"parameter '{key}' must be a plain file name, found '{value}'")
    return value


def _text(_key: str, value: str) -> str:
    return value


def _one_of(*choices: str) -> Reader:
    def written(key: str, value: str) -> str:
        if value not in choices:
            raise ModelError(f"parameter '{key}' must be one of {', '.join(choices)}, found '{value}'")
        return value

    return written


def _numbered(*choices: str) -> Reader:
    def written(key: str, value: str) -> str:
        if value not in map(str, range(len(choices))):
            raise ModelError(f"unsupported {key} value '{value}' is requested; 0 to {len(choices) - 1} are supported")
        return choices[int(value)]

    return written


def _no_graph(key: str, value: str) -> str:
    if _bit(key, value) == "1":
        raise ModelError(
            f"parameter '{key}' is not supported: a captured graph reads its inputs where those of its first run were, "
            "and here every request brings its own; backend pytorch has CUDA_GRAPH_BATCH_SIZES"
        )
    return "0"


_bit = _flag("1", "0")
_boolean = _flag("True", "False")

_PRECISIONS = {"FP32": "", "FP16": "trt_fp16_enable", "BF16": "trt_bf16_enable", "INT8": "trt_int8_enable"}

_TENSORRT: dict[str, tuple[str, Reader]] = {
    "max_workspace_size_bytes": ("trt_max_workspace_size", _integer),
    "int8_calibration_table_name": ("trt_int8_calibration_table_name", _plain_name),
    "int8_use_native_calibration_table": ("trt_int8_use_native_calibration_table", _boolean),
    "trt_engine_cache_prefix": ("trt_engine_cache_prefix", _plain_name),
    # Names of libraries in the folder of --backend-directory; `engine.loading.open_on_device` makes paths of them.
    "trt_extra_plugin_lib_paths": ("trt_extra_plugin_lib_paths", _text),
    "trt_cuda_graph_enable": ("trt_cuda_graph_enable", lambda key, value: _boolean(key, _no_graph(key, value))),
    **{
        key: (key, reader)
        for reader, keys in (
            (
                _integer,
                "trt_max_partition_iterations trt_min_subgraph_size trt_dla_core trt_builder_optimization_level "
                "trt_auxiliary_streams trt_ep_context_embed_mode",
            ),
            (
                _boolean,
                "trt_dla_enable trt_engine_cache_enable trt_force_sequential_engine_build "
                "trt_context_memory_sharing_enable trt_layer_norm_fp32_fallback trt_timing_cache_enable "
                "trt_force_timing_cache trt_detailed_build_log trt_build_heuristics_enable trt_sparsity_enable",
            ),
            (
                _text,
                "trt_tactic_sources trt_profile_min_shapes trt_profile_max_shapes trt_profile_opt_shapes",
            ),
        )
        for key in keys.split()
    },
}

_CUDA: dict[str, tuple[str, Reader]] = {
    "gpu_mem_limit": ("gpu_mem_limit", _integer),
    "arena_extend_strategy": ("arena_extend_strategy", _one_of("kNextPowerOfTwo", "kSameAsRequested")),
    "cudnn_conv_algo_search": ("cudnn_conv_algo_search", _one_of("EXHAUSTIVE", "HEURISTIC", "DEFAULT")),
    "tunable_op_max_tuning_duration_ms": ("tunable_op_max_tuning_duration_ms", _integer),
    "sdpa_kernel": ("sdpa_kernel", _integer),
    "enable_cuda_graph": ("enable_cuda_graph", _no_graph),
    **{
        key: (key, _bit)
        for key in [
            "do_copy_in_default_stream",
            "cudnn_conv_use_max_workspace",
            "cudnn_conv1d_pad_to_nc1d",
            "use_tf32",
            "prefer_nhwc",
            "fuse_conv_bias",
            "enable_skip_layer_norm_strict_mode",
            "use_ep_level_unified_stream",
            "tunable_op_enable",
            "tunable_op_tuning_enable",
        ]
    },
}

_DEPRECATED: dict[str, Reader] = {
    "cudnn_conv_algo_search": _numbered("EXHAUSTIVE", "HEURISTIC", "DEFAULT"),
    "gpu_mem_limit": _integer,
    "arena_extend_strategy": _numbered("kNextPowerOfTwo", "kSameAsRequested"),
    "do_copy_in_default_stream": _bit,
}
CUDA_PARAMETERS = tuple(_DEPRECATED)

_OPENVINO: dict[str, tuple[str, Reader]] = {
    "num_of_threads": ("num_of_threads", _integer),
    "num_streams": ("num_streams", _integer),
    "precision": ("precision", _one_of("FP32", "ACCURACY")),
    "disable_dynamic_shapes": ("disable_dynamic_shapes", _boolean),
}

_OPENVINO_CACHE = "openvino_cache_dir"
OPERATORS: dict[str, Reader] = {
    "trt_engine_cache_path": _text,
    "trt_timing_cache_path": _text,
    "trt_ep_context_file_path": _text,
    "trt_dump_ep_context_model": _boolean,
    "trt_dump_subgraphs": _boolean,
    _OPENVINO_CACHE: _text,
}
"""Settings of --backend-config=onnxruntime for all models, which a config may not set."""
_SETTING_OF = {
    **{("TensorRT", key): key for key in OPERATORS if key != _OPENVINO_CACHE},
    ("OpenVINO", "cache_dir"): _OPENVINO_CACHE,
}
