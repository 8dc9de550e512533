"""ONNX graph reader: nodes, tensors and declared types, without the package `onnx` (onnx.proto)."""

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from serving_runtime.proto import wire

MODEL_GRAPH = 7
GRAPH_NODE, GRAPH_INITIALIZER, GRAPH_INPUT, GRAPH_OUTPUT, GRAPH_VALUE = 1, 5, 11, 12, 13
NODE_INPUT, NODE_OUTPUT, NODE_TYPE, NODE_ATTRIBUTE, NODE_DOMAIN = 1, 2, 4, 5, 7
ATTRIBUTE_NAME, ATTRIBUTE_INTEGER, ATTRIBUTE_TENSOR, ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS = 1, 3, 5, 6, 11
_DIMS, DATA_TYPE, _FLOATS, _INT32S, _INT64S, _NAME, RAW, _DOUBLES = 1, 2, 4, 5, 7, 8, 9, 10

INT32, INT64 = 6, 7
"""Of TensorProto.DataType."""

_FORMATS = {1: "f", INT32: "i", INT64: "q", 11: "d"}
_MOST_VALUES = 64
"""Elements of a tensor whose values are read: shapes, repeats, scales and limits are short."""

Shape = tuple[int, ...]
Values = tuple[float, ...]


@dataclass(slots=True)
class Tensor:
    """A TensorProto.

    Attributes:
        kind: its TensorProto.DataType; 0 where missing.
        values: None where there are many, or they are in another file.
    """

    name: str = ""
    dims: list[int] = field(default_factory=list)
    kind: int = 0
    values: Values | None = None


@dataclass(slots=True)
class Node:
    """A NodeProto.

    Attributes:
        kind: its operator.
        domain: of its operator; empty for ONNX's own.
        tensors, integers: attributes by their names.
        graphs: the messages of its subgraphs.
    """

    kind: str = ""
    domain: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    integers: dict[str, int] = field(default_factory=dict)
    graphs: list[memoryview] = field(default_factory=list)


def read_tensor(content: memoryview) -> Tensor:
    """Return a TensorProto; raises ValueError, or struct.error, for other bytes."""
    found = Tensor()
    lists: dict[int, list[int]] = {}
    blocks: dict[int, memoryview] = {}
    for number, kind, begin, end in wire.fields(content):
        if kind == wire.VARINT and number == DATA_TYPE:
            found.kind = begin
        elif kind == wire.VARINT:
            lists.setdefault(number, []).append(begin)
        elif kind == wire.BYTES and number == _NAME:
            found.name = bytes(content[begin:end]).decode()
        elif kind == wire.BYTES and number == _DIMS:
            lists[_DIMS] = wire.varints(content[begin:end])
        elif kind == wire.BYTES:
            blocks[number] = content[begin:end]
    found.dims = lists.get(_DIMS, [])
    if len(found.dims) <= _MOST_VALUES and math.prod(found.dims) <= _MOST_VALUES:
        found.values = _values(found.kind, lists, blocks)
    return found


def _values(kind: int, lists: Mapping[int, Sequence[int]], blocks: Mapping[int, memoryview]) -> Values | None:
    code = _FORMATS.get(kind)
    if code is None:
        return None
    packed = blocks.get({"f": _FLOATS, "d": _DOUBLES}.get(code, -1), blocks.get(RAW))
    if packed is not None:
        return struct.unpack(f"<{len(packed) // struct.calcsize('<' + code)}{code}", packed)
    number = _INT64S if code == "q" else _INT32S
    found = lists.get(number) or (wire.varints(blocks[number]) if number in blocks else None)
    return None if found is None else tuple(value - 2**64 if value >= 2**63 else value for value in found)


def read_node(content: memoryview) -> Node:
    """Return a NodeProto; raises as `read_tensor`."""
    found = Node()
    for number, kind, begin, end in wire.fields(content):
        if kind != wire.BYTES:
            continue
        part = content[begin:end]
        if number == NODE_INPUT:
            found.inputs.append(bytes(part).decode())
        elif number == NODE_OUTPUT:
            found.outputs.append(bytes(part).decode())
        elif number == NODE_TYPE:
            found.kind = bytes(part).decode()
        elif number == NODE_DOMAIN:
            domain = bytes(part).decode()
            found.domain = "" if domain == "ai.onnx" else domain
        elif number == NODE_ATTRIBUTE:
            _read_attribute(found, part)
    return found


def _read_attribute(node: Node, content: memoryview) -> None:
    name, tensor, integer = "", None, None
    for number, kind, begin, end in wire.fields(content):
        if kind == wire.VARINT and number == ATTRIBUTE_INTEGER:
            integer = begin
        if kind != wire.BYTES:
            continue
        if number == ATTRIBUTE_NAME:
            name = bytes(content[begin:end]).decode()
        elif number == ATTRIBUTE_TENSOR:
            tensor = read_tensor(content[begin:end])
        elif number in (ATTRIBUTE_GRAPH, ATTRIBUTE_GRAPHS):
            node.graphs.append(content[begin:end])
    if tensor is not None:
        node.tensors[name] = tensor
    if integer is not None:
        node.integers[name] = integer


def read_value(content: memoryview) -> tuple[str, Shape | None, int]:
    """Return name, shape and TensorProto.DataType of a declared tensor (ValueInfoProto, TypeProto.Tensor)."""
    name, shape, kind = "", None, 0
    for number, wire_type, begin, end in wire.fields(content):
        if number == 1 and wire_type == wire.BYTES:
            name = bytes(content[begin:end]).decode()
        elif number == 2 and wire_type == wire.BYTES:
            tensor = _only(content[begin:end], 1)
            for inner, inner_type, at, stop in wire.fields(tensor):
                if inner == 1 and inner_type == wire.VARINT:
                    kind = at
                elif inner == 2 and inner_type == wire.BYTES:
                    shape = _dims(tensor[at:stop])
    return name, shape, kind


def _dims(content: memoryview) -> Shape:
    dims = []
    for number, wire_type, begin, end in wire.fields(content):
        if number == 1 and wire_type == wire.BYTES:
            values = [
                at for inner, kind, at, _ in wire.fields(content[begin:end]) if inner == 1 and kind == wire.VARINT
            ]
            dims.append(values[0] if values and 0 < values[0] < 2**63 else 1)
    return tuple(dims)


def _only(content: memoryview, number: int) -> memoryview:
    for found, kind, begin, end in wire.fields(content):
        if found == number and kind == wire.BYTES:
            return content[begin:end]
    return content[:0]
