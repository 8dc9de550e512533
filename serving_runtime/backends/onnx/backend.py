"""ONNX Runtime backend.

One session per model version and device serves all its instances there: a session may run in several threads at
once, and with one intra-op thread each run stays in its caller's thread.
"""

import ctypes
import mmap
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from serving_runtime.backends.onnx import division, sizes
from serving_runtime.backends.onnx.accelerators import OPERATORS
from serving_runtime.backends.onnx.file import read_header
from serving_runtime.backends.onnx.providers import check_used, providers, runs_on_gpus
from serving_runtime.backends.onnx.session_options import register, session_options, share_threads, shrinkage
from serving_runtime.common.datatypes import ABSENT, BF16, BYTES, DATATYPES, Array
from serving_runtime.common.errors import BackendError, InvalidArgument, ModelError
from serving_runtime.config.model import BackendOptions
from serving_runtime.config.signature import Signature, TensorSpec

_ONNX_BFLOAT16 = 16  # onnx.proto: TensorProto.DataType.BFLOAT16

_FOLDER_OF_WEIGHTS = "session.model_external_initializers_file_folder_path"

_TYPES = {
    "tensor(bool)": "BOOL",
    "tensor(uint8)": "UINT8",
    "tensor(uint16)": "UINT16",
    "tensor(uint32)": "UINT32",
    "tensor(uint64)": "UINT64",
    "tensor(int8)": "INT8",
    "tensor(int16)": "INT16",
    "tensor(int32)": "INT32",
    "tensor(int64)": "INT64",
    "tensor(float16)": "FP16",
    "tensor(bfloat16)": "BF16",
    "tensor(float)": "FP32",
    "tensor(double)": "FP64",
    "tensor(string)": "BYTES",
}

_OPSET = re.compile(r"Current official support for domain (\S+) is till opset (\d+)")
_IR_VERSION = re.compile(r"Unsupported model IR version: (\d+), max supported IR version: (\d+)")
_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (?:Load model from .*? failed:)?")
_SOURCE = re.compile(r"^\S+:\d+ .*?\) (?=[A-Z])")


class OnnxRuntimeBackend:
    """Opens .onnx files."""

    platform = "onnxruntime_onnx"
    default_filename = "model.onnx"

    def __init__(self, settings: Mapping[str, str]) -> None:
        """Take the --backend-config=onnxruntime,key=value settings; raises ModelError for an unknown one."""
        known = {"default-max-batch-size", "enable-global-threadpool", "intra_op_thread_count", "inter_op_thread_count"}
        known |= OPERATORS.keys()
        for key in settings:
            if key not in known:
                raise ModelError(
                    f"--backend-config=onnxruntime,{key}: unknown setting; known are {', '.join(sorted(known))}"
                )
        size = settings.get("default-max-batch-size", "4")
        if not size.isdigit():
            raise ModelError(f"--backend-config=onnxruntime,default-max-batch-size must be a number, found '{size}'")
        self.default_max_batch_size = int(size)
        shared = settings.get("enable-global-threadpool", "0")
        if shared not in ("0", "1"):
            raise ModelError(f"--backend-config=onnxruntime,enable-global-threadpool must be 0 or 1, found '{shared}'")
        self.default_parameters = {
            key: value for key, value in settings.items() if key in ("intra_op_thread_count", "inter_op_thread_count")
        }
        self._operators = {key: OPERATORS[key](key, value) for key, value in settings.items() if key in OPERATORS}
        self.runs_on_gpus = runs_on_gpus()
        self._shared_threads = shared == "1"
        if self._shared_threads:
            share_threads(self.default_parameters)

    def load(self, file: Path, options: BackendOptions) -> "OnnxModel":
        header = read_header(file)
        if options.memory_bytes is not None:
            sizes.check(file, options.memory_bytes)
        settings = session_options(
            {**self.default_parameters, **options.parameters}, options.graph_level, shared_threads=self._shared_threads
        )
        for library in options.op_libraries:
            register(settings, library)
        wanted = providers(options, self._operators)
        content = _without_traps(file) if header.opsets.get("ai.onnx", 0) >= division.SINCE_OPSET else None
        if content is not None:
            settings.add_session_config_entry(_FOLDER_OF_WEIGHTS, str(file.parent))
        try:
            session = ort.InferenceSession(
                content or str(file), sess_options=settings, providers=wanted, enable_fallback=0
            )
        except Exception as error:  # ONNX Runtime's exceptions share no base class of their own
            raise ModelError(_load_sentence(file.name, str(error), header.opsets)) from error
        check_used(session, wanted)
        return OnnxModel(session, header.opsets, file.name, shrinkage(options.parameters))


def _without_traps(file: Path) -> bytes | None:
    """Return a replacement model in which divisions do not trap; None where the file is loaded unchanged."""
    with file.open("rb") as stream:
        content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))  # closed with its last slice
    try:
        return division.rewritten(content)
    except (ValueError, struct.error, RecursionError):  # not a model, as ONNX Runtime will report
        return None


class OnnxModel:
    """One session and its signature."""

    def __init__(self, session: Any, opsets: dict[str, int], filename: str, run_options: Any) -> None:
        self.signature = Signature(
            inputs=(
                *[_spec(node, filename, "input") for node in session.get_inputs()],
                *[_spec(node, filename, "input", optional=True) for node in session.get_overridable_initializers()],
            ),
            outputs=tuple(_spec(node, filename, "output") for node in session.get_outputs()),
        )
        self.opsets = opsets
        self._session = session
        self._run_options = run_options
        self._inputs = [spec.name for spec in self.signature.inputs]
        self._outputs = [spec.name for spec in self.signature.outputs]
        datatypes = {spec.datatype.name for spec in (*self.signature.inputs, *self.signature.outputs)}
        self._has_strings = BYTES.name in datatypes
        self._has_bf16 = BF16.name in datatypes
        self._has_optional = any(spec.optional for spec in self.signature.inputs)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        try:
            if self._has_bf16:
                return self._run_values(inputs)
            if self._has_strings:
                inputs = [_as_text(array) if array.dtype == object else array for array in inputs]
            feeds = dict(zip(self._inputs, inputs, strict=True))
            if self._has_optional:
                feeds = {name: array for name, array in feeds.items() if array is not ABSENT}
            outputs = self._session.run(self._outputs, feeds, self._run_options)
        except InvalidArgument:
            raise
        except Exception as error:  # see above
            raise BackendError(f"the model failed: {_run_sentence(str(error))}") from error
        if self._has_strings:
            outputs = [_as_bytes(array) if array.dtype == object else array for array in outputs]
        return outputs  # type: ignore[no-any-return]

    def close(self) -> None:
        self._session = None

    def _run_values(self, inputs: Sequence[Array]) -> list[Array]:
        """Run by ONNX Runtime's own values: numpy has no BF16, so its bits pass as uint16."""
        feeds = {}
        for spec, array in zip(self.signature.inputs, inputs, strict=True):
            if array is ABSENT:
                continue
            array = np.ascontiguousarray(_as_text(array) if spec.datatype is BYTES else array)  # noqa: PLW2901
            if spec.datatype is BF16:
                feeds[spec.name] = ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array, _ONNX_BFLOAT16)
            else:
                feeds[spec.name] = ort.OrtValue.ortvalue_from_numpy(array)
        values = self._session.run_with_ort_values(self._outputs, feeds, self._run_options)
        outputs = []
        for spec, value in zip(self.signature.outputs, values, strict=True):
            if spec.datatype is BF16:
                content = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes())
                outputs.append(np.frombuffer(content, BF16.dtype).reshape(value.shape()))
            else:
                array = value.numpy()
                outputs.append(_as_bytes(array) if array.dtype == object else array)
        return outputs


def _spec(node: Any, filename: str, kind: str, *, optional: bool = False) -> TensorSpec:
    datatype = _TYPES.get(node.type)
    if datatype is None:
        hint = "; export the classifier without ZipMap" if node.type.startswith("seq(map(") else ""
        raise ModelError(
            f"{filename}: {kind} '{node.name}' has type {node.type}, which the V2 protocol cannot carry{hint}"
        )
    shape = tuple(dim if isinstance(dim, int) and dim >= 0 else -1 for dim in node.shape)
    return TensorSpec(node.name, DATATYPES[datatype], shape, optional)


def _as_text(array: Array) -> Array:
    """Return BYTES elements as text, as ONNX strings are; raises InvalidArgument where they are not UTF-8."""
    flat = np.empty(array.size, dtype=object)
    try:
        flat[:] = [element.decode("utf-8") for element in array.ravel()]
    except UnicodeDecodeError as error:
        raise InvalidArgument(f"a BYTES element is not UTF-8, which ONNX strings must be: {error.reason}") from error
    return flat.reshape(array.shape)


def _as_bytes(array: Array) -> Array:
    flat = np.empty(array.size, dtype=object)
    flat[:] = [element.encode("utf-8") for element in array.ravel()]
    return flat.reshape(array.shape)


def _load_sentence(filename: str, text: str, opsets: dict[str, int]) -> str:
    if match := _OPSET.search(text):
        domain, newest = match.groups()
        return f"{filename} uses opset {opsets.get(domain, '?')} of {domain}; this runtime supports up to {newest}"
    if match := _IR_VERSION.search(text):
        return f"{filename} uses ONNX IR version {match[1]}; this runtime supports up to {match[2]}"
    if "Protobuf parsing failed" in text:
        return f"{filename} is not an ONNX model: it does not parse"
    return f"{filename} cannot be loaded: {_run_sentence(text)}"


def _run_sentence(text: str) -> str:
    """Return ONNX Runtime's message without its codes and source places, on one line, at most 500 characters."""
    line = " ".join(_PREFIX.sub("", text).split())
    return _SOURCE.sub("", line)[:500] or "no reason given"
