"""Session options of ONNX Runtime from model parameters and graph level (Triton: ONNX Runtime backend, parameters)."""

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import onnxruntime as ort

from serving_runtime.backends.onnx.accelerators import CUDA_PARAMETERS
from serving_runtime.common.errors import ModelError

_SHRINKAGE = "memory.enable_memory_arena_shrinkage"
_INITIALIZERS = "session.use_device_allocator_for_initializers"

_GRAPH_LEVELS = {
    -1: ort.GraphOptimizationLevel.ORT_ENABLE_BASIC,
    0: ort.GraphOptimizationLevel.ORT_ENABLE_ALL,
    1: ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED,
    2: ort.GraphOptimizationLevel.ORT_DISABLE_ALL,
}


_THREADS = ("intra_op_thread_count", "inter_op_thread_count")
_shared: tuple[int, ...] = ()


def share_threads(parameters: Mapping[str, str]) -> None:
    """Create the global thread pool of all sessions, once per process (Triton: enable-global-threadpool).

    Raises ModelError when it was created with other numbers before.
    """
    global _shared  # noqa: PLW0603 - as ONNX Runtime's pool, one per process
    wanted = tuple(_number(key, parameters.get(key, "0"), 0, 1024) for key in _THREADS)
    with _sharing:
        if not _shared:
            ort.set_global_thread_pool_sizes(*wanted)
            _shared = wanted
        if _shared != wanted:
            raise ModelError(
                f"the threads that all sessions share were created as {_shared}, but {wanted} are requested"
            )


_sharing = threading.Lock()


def register(options: Any, library: Path) -> None:
    """Register a library's operators with a session; raises ModelError."""
    try:
        options.register_custom_ops_library(str(library))
    except Exception as error:  # ONNX Runtime's exceptions share no base class of their own
        raise ModelError(f"op_library_filename '{library.name}' cannot be used: {error}") from error


def session_options(parameters: Mapping[str, str], graph_level: int, *, shared_threads: bool = False) -> Any:
    """Return the session options; raises ModelError for an unknown parameter or an invalid value.

    Args:
        shared_threads: run in the global thread pool; numbers of threads have no effect then.
    """
    options = ort.SessionOptions()
    options.use_per_session_threads = not shared_threads
    options.log_severity_level = 4  # failures are raised, and logged once by the handler
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
    """Return run options that shrink the arena after each run, None where not configured."""
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
    """Applied per run instead, see shrinkage(), or to the CUDA provider, see providers."""


_SETTERS: dict[str, Callable[[Any, str, str], None]] = {
    "intra_op_thread_count": _intra_op,
    "inter_op_thread_count": _inter_op,
    "execution_mode": _execution_mode,
    "enable_mem_arena": _mem_arena,
    "enable_mem_pattern": _mem_pattern,
    _SHRINKAGE: _nothing,
    _INITIALIZERS: _initializers,
    **dict.fromkeys(CUDA_PARAMETERS, _nothing),
}
