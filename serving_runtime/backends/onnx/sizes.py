"""Memory limit for ONNX files: refuses declared tensors larger than memory, since a few bytes may declare gigabytes.

Follows shapes from initializers, constants and inputs (their variable dimensions count as 1) through the operators
that make large tensors of small ones, and no further; a run finds the rest. Reads the graph field by field, seeking
over weights (onnx.proto).
"""

import math
import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from serving_runtime.backends.onnx.graph import (
    GRAPH_INITIALIZER,
    GRAPH_INPUT,
    GRAPH_NODE,
    MODEL_GRAPH,
    Node,
    Shape,
    Tensor,
    Values,
    read_node,
    read_tensor,
    read_value,
)
from serving_runtime.common.errors import ModelError
from serving_runtime.proto import wire

_ELEMENT_BYTES = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}
"""By TensorProto.DataType; an unknown type counts as one byte."""


@dataclass(slots=True)
class _Known:
    """Known shapes and values of tensors, by name."""

    shapes: dict[str, Shape] = field(default_factory=dict)
    kinds: dict[str, int] = field(default_factory=dict)
    values: dict[str, Values] = field(default_factory=dict)


def check(file: Path, most_bytes: int) -> None:
    """Raise ModelError for a file in which a tensor is larger; unknown shapes are left to the library."""
    with file.open("rb") as stream:
        content = memoryview(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ))  # closed with its last slice
    try:
        for number, kind, begin, end in wire.fields(content):
            if number == MODEL_GRAPH and kind == wire.BYTES:
                _check_graph(content[begin:end], _Known(), most_bytes, file.name)
    except (ValueError, ArithmeticError, RecursionError, struct.error):
        return


def _check_graph(graph: memoryview, known: _Known, most_bytes: int, filename: str) -> None:
    nodes = []
    for number, kind, begin, end in wire.fields(graph):
        if kind != wire.BYTES:
            continue
        if number == GRAPH_INITIALIZER:
            _learn(known, read_tensor(graph[begin:end]))
        elif number == GRAPH_INPUT:
            _learn_input(known, graph[begin:end])
        elif number == GRAPH_NODE:
            nodes.append((begin, end))
    for begin, end in nodes:
        node = read_node(graph[begin:end])
        for inner in node.graphs:
            _check_graph(inner, known, most_bytes, filename)  # its names are in a scope of their own
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


def _learn(known: _Known, tensor: Tensor) -> None:
    known.shapes[tensor.name], known.kinds[tensor.name] = tuple(tensor.dims), tensor.kind
    if tensor.values is not None:
        known.values[tensor.name] = tensor.values


def _learn_input(known: _Known, content: memoryview) -> None:
    name, shape, kind = read_value(content)
    if shape is not None and name not in known.values:
        known.shapes.setdefault(name, shape)
        known.kinds.setdefault(name, kind)


# Output shapes of operators; None where they depend on unknown values


def _constant_of_shape(node: Node, known: _Known) -> Shape | None:
    return _integers(node, known, 0)


def _expand(node: Node, known: _Known) -> Shape | None:
    wanted = _integers(node, known, 1)
    return None if wanted is None else _broadcast(known.shapes.get(node.inputs[0], ()), wanted)


def _tile(node: Node, known: _Known) -> Shape | None:
    shape, repeats = known.shapes.get(_input(node, 0)), _integers(node, known, 1)
    if shape is None or repeats is None or len(shape) != len(repeats):
        return None
    return tuple(dim * count for dim, count in zip(shape, repeats, strict=True))


def _range(node: Node, known: _Known) -> Shape | None:
    bounds = [known.values.get(name) for name in node.inputs]
    if len(bounds) != 3 or not all(bounds):
        return None
    start, limit, delta = (value[0] for value in bounds if value)
    return (max(0, math.ceil((limit - start) / delta)),) if delta else None


def _resize(node: Node, known: _Known) -> Shape | None:
    sizes = _integers(node, known, 3)
    if sizes is not None:
        return sizes
    shape = known.shapes.get(_input(node, 0))
    scales = known.values.get(_input(node, 1 if node.kind == "Upsample" else 2))
    if shape is None or scales is None or len(shape) != len(scales):
        return None
    return tuple(int(dim * scale) for dim, scale in zip(shape, scales, strict=True))


def _elementwise(node: Node, known: _Known) -> Shape | None:
    shapes = [known.shapes.get(name) for name in node.inputs]
    found: Shape | None = ()
    for shape in shapes:
        found = None if found is None or shape is None else _broadcast(found, shape)
    return found


def _matmul(node: Node, known: _Known) -> Shape | None:
    left, right = known.shapes.get(_input(node, 0)), known.shapes.get(_input(node, 1))
    if left is None or right is None or len(left) < 2 or len(right) < 2:
        return None
    rows = _broadcast(left[:-2], right[:-2])
    return None if rows is None else (*rows, left[-2], right[-1])


def _same(node: Node, known: _Known) -> Shape | None:
    return known.shapes.get(_input(node, 0))


_SHAPES: Mapping[str, Callable[[Node, _Known], Shape | None]] = {
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


def _kind(node: Node, known: _Known) -> int:
    if node.kind == "ConstantOfShape":
        value = node.tensors.get("value")
        return value.kind if value is not None else 1
    return 0 if node.kind == "Cast" else known.kinds.get(_input(node, 0), 0)


def _input(node: Node, place: int) -> str:
    return node.inputs[place] if place < len(node.inputs) else ""


def _integers(node: Node, known: _Known, place: int) -> Shape | None:
    values = known.values.get(_input(node, place))
    return tuple(int(value) for value in values) if values is not None and all(v >= 0 for v in values) else None


def _broadcast(one: Shape, other: Shape) -> Shape | None:
    length = max(len(one), len(other))
    pairs = zip((1,) * (length - len(one)) + one, (1,) * (length - len(other)) + other, strict=True)
    return tuple(a if b == 1 else b for a, b in pairs)
