"""Model parameters and graph level as ONNX Runtime's session options (Triton: ONNX Runtime backend, parameters)."""

from collections.abc import Callable, Mapping
from typing import Any

import onnxruntime as ort

from serving_runtime.errors import ModelError

_SHRINKAGE = "memory.enable_memory_arena_shrinkage"
_INITIALIZERS = "session.use_device_allocator_for_initializers"

_GRAPH_LEVELS = {
    -1: ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    0: ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    1: ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}


def session_options(parameters: Mapping[str, str], graph_level: int) -> Any:
    """Return the session options; raises ModelError for an unknown parameter or a value that makes no sense."""
    options = ort.SessionOptions()
    options.log_severity_level = 4  # what fails is raised, and told once by whoever catches it
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    if graph_level not in _GRAPH_LEVELS:
        raise ModelError(f"optimization.graph.level must be one of {sorted(_GRAPH_LEVELS)}, found {graph_level}")
    options.graph_optimization_level = _GRAPH_LEVELS[graph_level]
    for key, value in parameters.items():
        setter = _SETTERS.get(key)
        if setter is None:
            raise ModelError(f"parameter '{key}' is unknown to the onnxruntime backend; known are {_known()}")
        setter(options, key, value)
    return options


def shrinkage(parameters: Mapping[str, str]) -> Any:
    """Return the run options that give arena memory back after each run, None where nobody asked for it."""
    devices = parameters.get(_SHRINKAGE)
    if not devices:
        return None
    options = ort.RunOptions()
    options.add_run_config_entry(_SHRINKAGE, devices)
    return options


def _known() -> str:
    return ", ".join(sorted(_SETTERS))


def _number(key: str, value: str, lowest: int, highest: int) -> int:
    if not value.strip().isdecimal() or not lowest <= int(value) <= highest:
        raise ModelError(f"parameter '{key}' must be a number from {lowest} to {highest}, found '{value}'")
    return int(value)


def _intra_op(options: Any, key: str, value: str) -> None:
    options.intra_op_num_threads = _number(key, value, 0, 1024)


def _inter_op(options: Any, key: str, value: str) -> None:
    options.inter_op_num_threads = _number(key, value, 0, 1024)


def _execution_mode(options: Any, key: str, value: str) -> None:
    modes = (ort.ExecutionMode.ORT_SEQUENTIAL, ort.ExecutionMode.ORT_PARALLEL)
    options.execution_mode = modes[_number(key, value, 0, 1)]


def _mem_arena(options: Any, key: str, value: str) -> None:
    options.enable_cpu_mem_arena = bool(_number(key, value, 0, 1))


def _mem_pattern(options: Any, key: str, value: str) -> None:
    options.enable_mem_pattern = bool(_number(key, value, 0, 1))


def _initializers(options: Any, key: str, value: str) -> None:
    options.add_session_config_entry(key, str(_number(key, value, 0, 1)))


def _nothing(_options: Any, _key: str, _value: str) -> None:
    """Applied per run instead, see shrinkage()."""


_SETTERS: dict[str, Callable[[Any, str, str], None]] = {
    "intra_op_thread_count": _intra_op,
    "inter_op_thread_count": _inter_op,
    "execution_mode": _execution_mode,
    "enable_mem_arena": _mem_arena,
    "enable_mem_pattern": _mem_pattern,
    _SHRINKAGE: _nothing,
    _INITIALIZERS: _initializers,
}
