"""OpenVINO backend, on the CPU: its own IR, ONNX, and TensorFlow's SavedModel and frozen GraphDef.

One compiled model serves all instances; each run takes an infer request from a free list. Inputs are read in place;
outputs are copied once, since their memory belongs to the request.
"""

import functools
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from serving_runtime.backends.arrays import writable
from serving_runtime.backends.parameters import Parameters, backend_settings, merged, one_line
from serving_runtime.common.datatypes import DATATYPES, Array
from serving_runtime.common.errors import BackendError, ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature, TensorSpec
from serving_runtime.config.tensors import VARIABLE, WrittenTensor

# OpenVINO's package reports each import to its makers where this module of theirs can be imported.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]
import openvino  # noqa: E402
from openvino.frontend import FrontEndManager  # noqa: E402

# Triton: OpenVINO backend, parameters.
PARAMETERS = ("HINT_BF16", "INFERENCE_NUM_THREADS", "NUM_STREAMS", "TARGET_DEVICE")

_TYPES = {
    "boolean": "BOOL",
    "u8": "UINT8",
    "u16": "UINT16",
    "u32": "UINT32",
    "u64": "UINT64",
    "i8": "INT8",
    "i16": "INT16",
    "i32": "INT32",
    "i64": "INT64",
    "f16": "FP16",
    "f32": "FP32",
    "f64": "FP64",
}
_FRONT_ENDS = {".xml": "ir", ".onnx": "onnx", ".graphdef": "tf", ".pb": "tf", ".savedmodel": "tf"}


class OpenVinoBackend:
    """Opens the formats of OpenVINO's front ends, chosen by the file's suffix."""

    platform = ""
    default_filename = "model.xml"

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take the --backend-config=openvino,key=value settings; raises ModelError."""
        self.default_max_batch_size, self._settings = backend_settings("openvino", settings, PARAMETERS, 4)

    def load(self, file: Path, options: BackendOptions) -> "OpenVinoModel":
        parameters = merged("openvino", self._settings, options.parameters, PARAMETERS)
        properties = _properties(parameters, options.instance_count)
        if not file.exists():
            raise ModelError(f"there is no {file.name}")
        try:
            model = _read(file)
            if not (model.inputs and model.outputs):
                raise ModelError(f"{file.name} is not a model: it has no inputs or no outputs")
            signature = Signature(
                _specs(model.inputs, options.inputs, "input", file.name),
                _specs(model.outputs, options.outputs, "output", file.name),
            )
            compiled = _core().compile_model(model, "CPU", properties)
        except ModelError:
            raise
        except Exception as error:  # OpenVINO's exceptions share no base class of their own
            raise ModelError(f"{file.name} cannot be loaded: {_reason(error)}") from error
        return OpenVinoModel(compiled, signature)


class OpenVinoModel:
    """One compiled model and its idle infer requests."""

    def __init__(self, compiled: Any, signature: Signature) -> None:
        self.signature = signature
        self.opsets: dict[str, int] = {}
        self._compiled = compiled
        self._idle: deque[Any] = deque()

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        try:
            request = self._idle.pop()
        except IndexError:
            request = self._compiled.create_infer_request()
        try:
            for index, array in enumerate(inputs):
                request.set_input_tensor(index, _tensor(array))
            request.infer()
            return [
                np.array(request.get_output_tensor(index).data).reshape(request.get_output_tensor(index).shape)
                for index in range(len(self.signature.outputs))
            ]
        except Exception as error:  # see above
            raise BackendError(f"the model failed: {_reason(error)}") from error
        finally:
            self._idle.append(request)

    def close(self) -> None:
        self._idle.clear()
        self._compiled = None


@functools.cache
def _core() -> Any:
    return openvino.Core()


def _read(file: Path) -> Any:
    name = _FRONT_ENDS.get(file.suffix)
    if name is None:
        raise ModelError(f"{file.name} is of no kind that OpenVINO reads here: {', '.join(_FRONT_ENDS)}")
    front_end = FrontEndManager().load_by_framework(name)
    if file.name == "saved_model.pb":  # TensorFlow Serving's layout: the version's folder is the SavedModel
        file = file.parent
    return front_end.convert(front_end.load(str(file)))


def _properties(parameters: Parameters, instances: int) -> dict[str, Any]:
    """Return the compile properties: one thread and one stream for each instance, unless configured otherwise."""
    parameters.choice("TARGET_DEVICE", "CPU", ("CPU",))
    lower_precision = parameters.choice("HINT_BF16", "NO", ("NO", "YES")) == "YES"
    return {
        "INFERENCE_NUM_THREADS": parameters.number("INFERENCE_NUM_THREADS", instances, 0, 1024),
        "NUM_STREAMS": parameters.number("NUM_STREAMS", instances, 1, 1024),
        # Otherwise the CPU determines the precision of the results.
        "INFERENCE_PRECISION_HINT": "bf16" if lower_precision else "f32",
        "ENABLE_CPU_PINNING": False,
    }


def _specs(ports: Sequence[Any], written: Sequence[WrittenTensor], kind: str, filename: str) -> tuple[TensorSpec, ...]:
    """Return the tensors of a model; a port may have several names, of which config.pbtxt may choose."""
    chosen = {tensor.name for tensor in written}
    return tuple(_spec(port, chosen, f"{filename}: {kind}", index) for index, port in enumerate(ports))


def _spec(port: Any, chosen: set[str], where: str, index: int) -> TensorSpec:
    offered = {name.removesuffix(":0") for name in port.names}  # TensorFlow's index of an operation's result
    names = sorted(offered, key=lambda name: (name not in chosen, ":" in name, len(name), name))
    name = names[0] if names else f"{where.rpartition(' ')[2]}_{index}"
    kind = port.element_type.get_type_name()
    datatype = _TYPES.get(kind)
    if datatype is None:
        raise ModelError(f"{where} '{name}' has type {kind}, which this backend does not serve")
    rank = port.partial_shape.rank
    if rank.is_dynamic:
        raise ModelError(f"{where} '{name}' has any number of dimensions; save the model with a known number")
    shape = tuple(VARIABLE if dim.is_dynamic else dim.get_length() for dim in port.partial_shape)
    return TensorSpec(name, DATATYPES[datatype], shape)


def _tensor(array: Array) -> Any:
    """Return an input as a tensor on the same memory; OpenVINO requires it writable, and only reads it."""
    return openvino.Tensor(writable(array), shared_memory=True)


def _reason(error: Exception) -> str:
    """Return OpenVINO's message without the source locations before all lines but the reason's."""
    lines = [line.strip() for line in str(error).splitlines()]
    reasons = [
        line for line in lines if line and not line.startswith(("Exception from ", "Check '", "FrontEnd API failed"))
    ]
    return " ".join(" ".join(reasons).split())[:500] or one_line(error)
