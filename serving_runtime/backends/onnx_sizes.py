"""Refuses ONNX files that say themselves that a tensor is larger than memory: a few bytes may ask for gigabytes.

Follows shapes from initializers, constants and inputs (their variable dimensions are taken for 1) through the
operators that make large tensors of small ones, and no further: what depends on more than that is found when the model
is run. Reads the graph field by field, seeking over weights (onnx.proto).
"""

import math
import mmap
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from serving_runtime.errors import ModelError
from serving_runtime.proto import wire

_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT = 1, 5, 11
_NODE_INPUT, _NODE_OUTPUT, _NODE_TYPE, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_NAME, _ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH = 1, 5, 6
_DIMS, _DATA_TYPE, _FLOATS, _INT32S, _INT64S, _NAME, _RAW, _DOUBLES = 1, 2, 4, 5, 7, 8, 9, 10

_ELEMENT_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}
"""By TensorProto.DataType; a type that is not here is counted as a byte."""

_FORMATS = {1: "f", 6: "i", 7: "q", 11: "d"}
_MOST_VALUES = 64
"""Of a tensor whose values are read: shapes, repeats, scales and limits are short."""

Shape = tuple[int, ...]
Values = tuple[float, ...]


@dataclass(slots=True)
class _Tensor:
    name: str = ""
    dims: list[int] = field(default_factory=list)
    kind: int = 0
    values: Values | None = None


@dataclass(slots=True)
class _Node:
    kind: str = ""
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    tensors: dict[str, _Tensor] = field(default_factory=dict)
    graphs: list[memoryview] = field(default_factory=list)


@dataclass(slots=True)
class _Known:
    """What is known of tensors by their names."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    values: dict[str, Values] = field(default_factory=dict)


def check(file: Path, most_bytes: int) -> None:
    """Raise ModelError for a file in which a tensor is larger; what cannot be followed is left to the library."""
    with file.open("rb") as stream:
        content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))  # closed with its last slice
    try:
        for number, kind, begin, end in wire.fields(content):
            if number == _MODEL_GRAPH and kind == wire.BYTES:
                _check_graph(content[begin:end], _Known(), most_bytes, file.name)
    except (ValueError, ArithmeticError, RecursionError, struct.error):
        return


def _check_graph(graph: memoryview, known: _Known, most_bytes: int, filename: str) -> None:
    nodes = []
    for number, kind, begin, end in wire.fields(graph):
        if kind != wire.BYTES:
            continue
        if number == _GRAPH_INITIALIZER:
            _learn(known, _tensor(graph[begin:end]))
        elif number == _GRAPH_INPUT:
            _learn_input(known, graph[begin:end])
        elif number == _GRAPH_NODE:
            nodes.append((begin, end))
    for begin, end in nodes:
        node = _node(graph[begin:end])
        for inner in node.graphs:
            _check_graph(inner, known, most_bytes, filename)  # its names are others than those around it
        if not node.outputs:
            continue
        if node.kind == "Constant":
            if (value := node.tensors.get("value")) is not None:
                value.name = node.outputs[0]
                _learn(known, value)
            continue
        shape_of = _SHAPES.get(node.kind)
        shape = shape_of(node, known) if shape_of is not None else None
        if shape is None:
            continue
        kind = _kind(node, known)
        size = math.prod(shape) * _ELEMENT_BYTES.get(kind, 1)
        if size > most_bytes:
            raise ModelError(
                f"{filename}: {node.kind} makes a tensor {list(shape)} of {size / 2**20:.1f} MiB, and a model may take "
                f"{most_bytes / 2**20:.1f} MiB here; make it smaller, or give the server more memory"
            )
        known.shapes[node.outputs[0]], known.kinds[node.outputs[0]] = shape, kind


def _learn(known: _Known, tensor: _Tensor) -> None:
    known.shapes[tensor.name], known.kinds[tensor.name] = tuple(tensor.dims), tensor.kind
    if tensor.values is not None:
        known.values[tensor.name] = tensor.values


# Shapes of what operators make; None where they depend on more than is known


def _constant_of_shape(node: _Node, known: _Known) -> Shape | None:
    return _integers(node, known, 0)


def _expand(node: _Node, known: _Known) -> Shape | None:
    wanted = _integers(node, known, 1)
    return None if wanted is None else _broadcast(known.shapes.get(node.inputs[0], ()), wanted)


def _tile(node: _Node, known: _Known) -> Shape | None:
    shape, repeats = known.shapes.get(_input(node, 0)), _integers(node, known, 1)
    if shape is None or repeats is None or len(shape) != len(repeats):
        return None
    return tuple(dim * count for dim, count in zip(shape, repeats, strict=True))


def _range(node: _Node, known: _Known) -> Shape | None:
    bounds = [known.values.get(name) for name in node.inputs]
    if len(bounds) != 3 or not all(bounds):
        return None
    start, limit, delta = (value[0] for value in bounds if value)
    return (max(0, math.ceil((limit - start) / delta)),) if delta else None


def _resize(node: _Node, known: _Known) -> Shape | None:
    sizes = _integers(node, known, 3)
    if sizes is not None:
        return sizes
    shape = known.shapes.get(_input(node, 0))
    scales = known.values.get(_input(node, 1 if node.kind == "Upsample" else 2))
    if shape is None or scales is None or len(shape) != len(scales):
        return None
    return tuple(int(dim * scale) for dim, scale in zip(shape, scales, strict=True))


def _elementwise(node: _Node, known: _Known) -> Shape | None:
    shapes = [known.shapes.get(name) for name in node.inputs]
    found: Shape | None = ()
    for shape in shapes:
        found = None if found is None or shape is None else _broadcast(found, shape)
    return found


def _matmul(node: _Node, known: _Known) -> Shape | None:
    left, right = known.shapes.get(_input(node, 0)), known.shapes.get(_input(node, 1))
    if left is None or right is None or len(left) < 2 or len(right) < 2:
        return None
    rows = _broadcast(left[:-2], right[:-2])
    return None if rows is None else (*rows, left[-2], right[-1])


def _same(node: _Node, known: _Known) -> Shape | None:
    return known.shapes.get(_input(node, 0))


_SHAPES: Mapping[str, Callable[[_Node, _Known], Shape | None]] = {
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Tile": _tile,
    "Range": _range,
    "Resize": _resize,
    "Upsample": _resize,
    "MatMul": _matmul,
    **dict.fromkeys(("Add", "Sub", "Mul", "Div", "Pow"), _elementwise),
    **dict.fromkeys(("Identity", "Abs", "Cast", "Exp", "Neg", "Relu", "Sigmoid", "Sqrt", "Tanh"), _same),
}


def _kind(node: _Node, known: _Known) -> int:
    if node.kind == "ConstantOfShape":
        value = node.tensors.get("value")
        return value.kind if value is not None else 1
    return 0 if node.kind == "Cast" else known.kinds.get(_input(node, 0), 0)


def _input(node: _Node, place: int) -> str:
    return node.inputs[place] if place < len(node.inputs) else ""


def _integers(node: _Node, known: _Known, place: int) -> Shape | None:
    values = known.values.get(_input(node, place))
    return tuple(int(value) for value in values) if values is not None and all(v >= 0 for v in values) else None


def _broadcast(one: Shape, other: Shape) -> Shape | None:
    length = max(len(one), len(other))
    pairs = zip((1,) * (length - len(one)) + one, (1,) * (length - len(other)) + other, strict=True)
    return tuple(a if b == 1 else b for a, b in pairs)


# Messages


def _tensor(content: memoryview) -> _Tensor:
    found = _Tensor()
    lists: dict[int, list[int]] = {}
    blocks: dict[int, memoryview] = {}
    for number, kind, begin, end in wire.fields(content):
        if kind == wire.VARINT and number == _DATA_TYPE:
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
    packed = blocks.get({"f": _FLOATS, "d": _DOUBLES}.get(code, -1), blocks.get(_RAW))
    if packed is not None:
        return struct.unpack(f"<{len(packed) // struct.calcsize('<' + code)}{code}", packed)
    number = _INT64S if code == "q" else _INT32S
    found = lists.get(number) or (wire.varints(blocks[number]) if number in blocks else None)
    return None if found is None else tuple(value - 2**64 if value >= 2**63 else value for value in found)


def _node(content: memoryview) -> _Node:
    found = _Node()
    for number, kind, begin, end in wire.fields(content):
        if kind != wire.BYTES:
            continue
        part = content[begin:end]
        if number == _NODE_INPUT:
            found.inputs.append(bytes(part).decode())
        elif number == _NODE_OUTPUT:
            found.outputs.append(bytes(part).decode())
        elif number == _NODE_TYPE:
            found.kind = bytes(part).decode()
        elif number == _NODE_ATTRIBUTE:
            _read_attribute(found, part)
    return found


def _read_attribute(node: _Node, content: memoryview) -> None:
    name, tensor = "", None
    for number, kind, begin, end in wire.fields(content):
        if kind != wire.BYTES:
            continue
        if number == _ATTRIBUTE_NAME:
            name = bytes(content[begin:end]).decode()
        elif number == _ATTRIBUTE_TENSOR:
            tensor = _tensor(content[begin:end])
        elif number == _ATTRIBUTE_GRAPH:
            node.graphs.append(content[begin:end])
    if tensor is not None:
        node.tensors[name] = tensor


def _learn_input(known: _Known, content: memoryview) -> None:
    """Take note of an input's shape (onnx.proto: ValueInfoProto, TypeProto.Tensor, TensorShapeProto)."""
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
    if shape is not None and name not in known.values:
        known.shapes.setdefault(name, shape)
        known.kinds.setdefault(name, kind)


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
