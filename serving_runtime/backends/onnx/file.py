"""ONNX file header: the operator sets, which ONNX Runtime does not report.

Reads the outermost protobuf message only (onnx.proto: ModelProto), seeking over the graph, so that it needs neither
the `onnx` package nor memory for the weights.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from serving_runtime.common.errors import ModelError

_IR_VERSION, _GRAPH, _OPSET_IMPORT = 1, 7, 8
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MAX_OPSET_BYTES = 4096


class _MalformedError(Exception):
    """The bytes are not a protobuf message."""


@dataclass(frozen=True, slots=True)
class OnnxHeader:
    """The header of an ONNX file."""

    ir_version: int
    opsets: dict[str, int]


def read_header(file: Path) -> OnnxHeader:
    """Return the header of an ONNX file; raises ModelError when the file is not an ONNX model."""
    try:
        with file.open("rb") as stream:
            return _read(stream, file.stat().st_size, file.name)
    except _MalformedError as error:
        raise ModelError(f"{file.name} is not an ONNX model: {error}") from error
    except OSError as error:
        raise ModelError(f"{file.name} cannot be read: {error.strerror}") from error


def _read(stream: BinaryIO, size: int, name: str) -> OnnxHeader:
    if size == 0:
        raise ModelError(f"{name} is not an ONNX model: the file is empty")
    ir_version, opsets, has_graph = 0, {}, False
    while stream.tell() < size:
        field, wire_type = divmod(_varint(stream), 8)
        if field == 0:
            raise _MalformedError("it is not a protobuf message")  # protobuf: fields are numbered from 1
        if wire_type == _VARINT:
            value = _varint(stream)
            ir_version = value if field == _IR_VERSION else ir_version
            continue
        length = _length(stream, wire_type)
        if length > size - stream.tell():
            raise _MalformedError("it ends in the middle of a field")
        has_graph = has_graph or field == _GRAPH
        if field == _OPSET_IMPORT and length <= _MAX_OPSET_BYTES:
            domain, version = _opset(stream, stream.tell() + length)
            opsets[domain or "ai.onnx"] = version
        else:
            stream.seek(length, 1)
    if not (has_graph and opsets):
        raise _MalformedError("it has no graph or no operator sets")
    return OnnxHeader(ir_version, opsets)


def _opset(stream: BinaryIO, end: int) -> tuple[str, int]:
    domain, version = "", 0
    while stream.tell() < end:
        field, wire_type = divmod(_varint(stream), 8)
        if wire_type == _VARINT:
            value = _varint(stream)
            version = value if field == 2 else version
            continue
        length = _length(stream, wire_type)
        if length > end - stream.tell():
            raise _MalformedError("an operator set is cut short")
        content = stream.read(length)
        domain = content.decode("utf-8", "replace") if field == 1 else domain
    return domain, version


def _length(stream: BinaryIO, wire_type: int) -> int:
    if wire_type == _BYTES:
        return _varint(stream)
    if wire_type == _FIXED64:
        return 8
    if wire_type == _FIXED32:
        return 4
    raise _MalformedError("it is not a protobuf message")


def _varint(stream: BinaryIO) -> int:
    value = 0
    for shift in range(0, 70, 7):
        byte = stream.read(1)
        if not byte:
            raise _MalformedError("it ends in the middle of a number")
        value |= (byte[0] & 0x7F) << shift
        if byte[0] < 0x80:
            return value
    raise _MalformedError("it is not a protobuf message")
