"""TensorRT engine: deserializes a plan, reads its tensors and profiles, and runs it.

Built to TensorRT's Python API reference (10 and 11); not verified on hardware.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tensorrt as trt

from serving_runtime.backends.cuda_memory import Stage, Stream
from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import BackendError, ModelError
from serving_runtime.config.signature import TensorSpec

Bounds = tuple[tuple[int, ...], tuple[int, ...]]
"""The smallest and the largest shape of an input."""

_DATATYPES = {
    "FLOAT": "FP32",
    "HALF": "FP16",
    "BF16": "BF16",
    "INT8": "INT8",
    "INT32": "INT32",
    "INT64": "INT64",
    "UINT8": "UINT8",
    "BOOL": "BOOL",
}


class Messages(trt.ILogger):  # type: ignore[misc] # the library has no types
    """Collects TensorRT's errors; a failed call itself returns nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._errors: list[str] = []

    def log(self, severity: Any, message: str) -> None:
        """Record a message; called by TensorRT."""
        if severity in (trt.ILogger.Severity.ERROR, trt.ILogger.Severity.INTERNAL_ERROR):
            self._errors.append(message)

    def taken(self) -> str:
        """Return the errors since the last call on one line."""
        said, self._errors = "; ".join(self._errors), []
        return " ".join(said.split())[:500] or "it gives no reason"


@dataclass(frozen=True, slots=True)
class Engine:
    """A plan in memory; any number of contexts run it."""

    native: Any
    messages: Messages
    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]

    def bounds(self, profile: int) -> list[Bounds]:
        """Return an optimization profile's limits, in the inputs' order."""
        found = []
        for spec in self.inputs:
            smallest, _, largest = self.native.get_tensor_profile_shape(spec.name, profile)
            found.append((tuple(smallest), tuple(largest)))
        return found


def read(file: Path) -> Engine:
    """Return a plan's engine; raises ModelError in one sentence, also for a plan of another GPU or TensorRT."""
    try:
        plan = file.read_bytes()
    except OSError as error:
        raise ModelError(f"{file.name} cannot be read: {error.strerror}") from error
    messages = Messages()
    native = trt.Runtime(messages).deserialize_cuda_engine(plan)
    if native is None:
        raise ModelError(
            f"{file.name} cannot be loaded by TensorRT {trt.__version__} on this GPU: {messages.taken()}; a plan "
            "serves the TensorRT and the kind of GPU or slice that it was built by: rebuild it there"
        )
    names = [native.get_tensor_name(index) for index in range(native.num_io_tensors)]
    inputs = [name for name in names if native.get_tensor_mode(name) == trt.TensorIOMode.INPUT]
    outputs = [name for name in names if name not in inputs]
    return Engine(
        native,
        messages,
        tuple(_spec(native, name, f"{file.name}: input") for name in inputs),
        tuple(_spec(native, name, f"{file.name}: output") for name in outputs),
    )


def _spec(native: Any, name: str, where: str) -> TensorSpec:
    kind = native.get_tensor_dtype(name).name
    if kind not in _DATATYPES:
        raise ModelError(f"{where} '{name}' has type {kind}, which the V2 protocol cannot carry")
    if native.is_shape_inference_io(name):
        raise ModelError(f"{where} '{name}' is a shape tensor, which this backend does not serve")
    return TensorSpec(name, DATATYPES[_DATATYPES[kind]], tuple(native.get_tensor_shape(name)))


class Context:
    """One execution context with its own stream and memory; one run at a time."""

    def __init__(self, engine: Engine, gpu: int) -> None:
        self._engine = engine
        self._stream = Stream(gpu)
        self._native = engine.native.create_execution_context()
        if self._native is None:
            raise BackendError(f"TensorRT cannot make an execution context: {engine.messages.taken()}")
        self._profile = -1
        self._stages = {spec.name: Stage(self._stream) for spec in (*engine.inputs, *engine.outputs)}

    def run(self, inputs: Sequence[Array], profile: int) -> list[Array]:
        """Return the outputs for inputs that the profile accepts."""
        self._stream.enter()
        if profile != self._profile:
            self._done(self._native.set_optimization_profile_async(profile, self._stream.handle))
            self._profile = profile
        for spec, array in zip(self._engine.inputs, inputs, strict=True):
            self._done(self._native.set_input_shape(spec.name, array.shape))
            self._done(self._native.set_tensor_address(spec.name, self._stages[spec.name].send(array)))
        shapes = [tuple(self._native.get_tensor_shape(spec.name)) for spec in self._engine.outputs]
        sizes = [self._reserve(spec, shape) for spec, shape in zip(self._engine.outputs, shapes, strict=True)]
        self._done(self._native.execute_async_v3(self._stream.handle))
        for spec, size_bytes in zip(self._engine.outputs, sizes, strict=True):
            self._stages[spec.name].fetch(size_bytes)
        self._stream.wait()
        return [
            self._stages[spec.name].array(shape, spec.datatype.dtype)
            for spec, shape in zip(self._engine.outputs, shapes, strict=True)
        ]

    def close(self) -> None:
        """Release the device's memory."""
        self._stream.enter()
        for stage in self._stages.values():
            stage.free()
        self._native = None
        self._stream.close()

    def _reserve(self, spec: TensorSpec, shape: tuple[int, ...]) -> int:
        if any(dim < 0 for dim in shape):
            raise BackendError(f"output '{spec.name}' has a shape that depends on its values, which is not served")
        size_bytes = spec.datatype.dtype.itemsize
        for dim in shape:
            size_bytes *= dim
        self._done(self._native.set_tensor_address(spec.name, self._stages[spec.name].reserve(size_bytes)))
        return int(size_bytes)

    def _done(self, succeeded: bool) -> None:
        if not succeeded:
            raise BackendError(f"TensorRT failed: {self._engine.messages.taken()}")
