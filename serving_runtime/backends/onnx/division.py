"""Integer division guard: rewrites divisions of an ONNX graph with which a request could crash the server.

The least integer divided by -1 overflows, which raises SIGFPE and ends the process. ONNX Runtime refuses a division by
zero itself, but not this one. Where a divisor may be -1, the graph divides by 1 instead and changes the sign, which is
equal for all other numbers:

    y = Div(a, b)  ->  is_minus = Equal(b, -1)       y = Mod(a, b)  ->  is_minus = Equal(b, -1)
                       safe = Where(is_minus, 1, b)                     safe = Where(is_minus, 1, b)
                       q = Div(a, safe)                                 y = Mod(a, safe)
                       y = Where(is_minus, Neg(q), q)

A division stays as it is where its divisor is a constant without -1, and where its dividend is computed from shapes and
constants alone. Types are followed backwards from a division: numbers that neither the file nor an operator declares
INT32 or INT64 are left alone, and so are functions of the file. Pure.
"""

import itertools
import struct
from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence

from serving_runtime.backends.onnx import graph as onnx_graph
from serving_runtime.backends.onnx.graph import INT32, INT64, Node, Tensor, read_node, read_tensor, read_value
from serving_runtime.proto import wire

SINCE_OPSET = 9
"""First ONNX operator set that has Where."""

_MARKS = tuple(wire.written(onnx_graph.NODE_TYPE, wire.BYTES, kind) for kind in (b"Div", b"Mod"))
_MAKE_INT64 = frozenset({"ArgMax", "ArgMin", "NonZero", "Shape", "Size"})
_OF_FIRST = """
    Abs Add Clip Compress Concat CumSum Div Expand Flatten Gather GatherElements GatherND Identity Max Min Mod Mul Neg
    Pad ReduceMax ReduceMin ReduceProd ReduceSum Reshape ScatterElements ScatterND Sign Slice Split Squeeze Sub Sum
    Tile Transpose Trilu Unsqueeze
"""
_TYPE_OF = {**dict.fromkeys(_OF_FIRST.split(), 0), "Where": 1}
"""Operators whose outputs have the type of an input, and the index of that input."""

_OF_SHAPES = _TYPE_OF.keys() | {"Cast", "Range"}
"""Operators that compute, from shapes and constants, numbers far from the least integer."""

_MOST_STEPS = 1000
"""Limit of nodes followed from a division back to the shapes that it is computed from."""

_LEAST = {INT32: -(2**31), INT64: -(2**63)}
_ATTRIBUTE_KIND, _KIND_TENSOR = 20, 4  # onnx.proto: AttributeProto.type

_Change = Callable[[memoryview], Sequence[bytes]]
"""Returns the replacements of a message, empty where it stays."""


def rewritten(model: memoryview) -> bytes | None:
    """Return a model (ModelProto) in which divisions do not trap; None where no change is needed.

    Raises ValueError or struct.error for bytes that are not a model.
    """
    numbers = itertools.count()
    found = _changed(model, {onnx_graph.MODEL_GRAPH: lambda graph: _Graph(graph, None, numbers).rewritten()})
    return next(iter(found), None)


def _changed(message: memoryview, changes: Mapping[int, _Change]) -> Sequence[bytes]:
    """Return a message with fields changed, by their numbers; empty where all stay as they are."""
    parts: list[bytes | memoryview] = []
    kept = field = 0  # the end of what is copied to `parts`, and the start of a field
    for number, kind, begin, end in wire.fields(message):
        if kind == wire.BYTES and number in changes and (found := changes[number](message[begin:end])):
            parts += (message[kept:field], *(wire.written(number, wire.BYTES, each) for each in found))
            kept = end
        field = end
    return (b"".join((*parts, message[kept:])),) if parts else ()


class _Graph:
    """One graph, with the values of names in it and around it."""

    def __init__(self, content: memoryview, around: "_Graph | None", numbers: Iterator[int]) -> None:
        self._content = content
        self._numbers = numbers
        self._constants: ChainMap[str, Tensor] = around._constants.new_child() if around else ChainMap()
        self._kinds: ChainMap[str, int] = around._kinds.new_child() if around else ChainMap()
        self._makers: ChainMap[str, Node] = around._makers.new_child() if around else ChainMap()
        self._learnt = False

    def rewritten(self) -> Sequence[bytes]:
        return _changed(self._content, {onnx_graph.GRAPH_NODE: self._node})

    def _node(self, content: memoryview) -> Sequence[bytes]:
        if not _divides(content):
            return ()
        self._learn()
        node = read_node(content)
        kind = self._kind_of_division(node)
        if kind in _LEAST and self._may_trap(node, kind):
            return _safe(node, content, kind, f"fairlead/division/{next(self._numbers)}")
        inner = dict.fromkeys((onnx_graph.ATTRIBUTE_GRAPH, onnx_graph.ATTRIBUTE_GRAPHS), self._inner)
        return _changed(content, {onnx_graph.NODE_ATTRIBUTE: lambda attribute: _changed(attribute, inner)})

    def _inner(self, graph: memoryview) -> Sequence[bytes]:
        return _Graph(graph, self, self._numbers).rewritten()

    def _learn(self) -> None:
        if self._learnt:
            return
        self._learnt = True
        inputs = set()
        for number, kind, begin, end in wire.fields(self._content):
            if kind != wire.BYTES:
                continue
            content = self._content[begin:end]
            if number == onnx_graph.GRAPH_NODE:
                node = read_node(content)
                self._makers.update(dict.fromkeys(node.outputs, node))
                if (constant := _constant_of(node)) is not None:
                    self._constants[node.outputs[0]] = constant
            elif number == onnx_graph.GRAPH_INITIALIZER:
                tensor = read_tensor(content)
                self._constants[tensor.name] = tensor
            elif number in (onnx_graph.GRAPH_INPUT, onnx_graph.GRAPH_OUTPUT, onnx_graph.GRAPH_VALUE):
                name, _, self._kinds[name] = read_value(content)
                if number == onnx_graph.GRAPH_INPUT:
                    inputs.add(name)
        for name in inputs:  # a request may replace an initializer's value too
            self._constants.maps[0].pop(name, None)

    def _kind_of_division(self, node: Node) -> int:
        """Return the type of a division; 0 for other nodes, and where it is unknown."""
        if node.kind not in ("Div", "Mod") or node.domain or len(node.inputs) != 2 or len(node.outputs) != 1:
            return 0
        names = (node.inputs[1], node.inputs[0], node.outputs[0])
        return next(filter(None, map(self._kind, names)), 0)

    def _kind(self, name: str) -> int:
        """Return a tensor's TensorProto.DataType; 0 where it is unknown."""
        passed: set[str] = set()
        kind = 0
        while name not in passed and not (kind := self._kind_here(name)):
            passed.add(name)
            node = self._makers.get(name)
            place = _TYPE_OF.get(node.kind) if node is not None else None
            if node is None or place is None or len(node.inputs) <= place:
                break
            name = node.inputs[place]
        self._kinds.update(dict.fromkeys(passed, kind))
        return kind

    def _kind_here(self, name: str) -> int:
        constant, node = self._constants.get(name), self._makers.get(name)
        found = constant.kind if constant is not None else self._kinds.get(name, 0)
        if found or node is None:
            return found
        return INT64 if node.kind in _MAKE_INT64 else node.integers.get("to", 0) if node.kind == "Cast" else 0

    def _may_trap(self, node: Node, kind: int) -> bool:
        dividend, divisor = (self._constants.get(name) for name in node.inputs)
        if divisor is not None and divisor.values is not None and -1 not in divisor.values:
            return False
        if dividend is not None and dividend.values is not None:
            return _LEAST[kind] in dividend.values
        return not self._of_shapes(node.inputs[0])

    def _of_shapes(self, name: str) -> bool:
        """Return whether numbers are computed from shapes and constants alone."""
        left = [name]
        seen: set[str] = set()
        while left and len(seen) < _MOST_STEPS:
            name = left.pop()
            if not name or name in seen or name in self._constants:
                continue
            seen.add(name)
            node = self._makers.get(name)
            if node is None or node.kind not in _OF_SHAPES | {"Shape", "Size"}:
                return False
            left += node.inputs if node.kind in _OF_SHAPES else ()
        return not left


def _divides(node: memoryview) -> bool:
    """Return whether a node is a division, or has one in its subgraphs."""
    content = bytes(node)
    return any(mark in content for mark in _MARKS)


def _constant_of(node: Node) -> Tensor | None:
    if node.kind != "Constant" or not node.outputs:
        return None
    if "value_int" in node.integers:
        value = node.integers["value_int"]
        return Tensor(kind=INT64, values=(value - 2**64 if value >= 2**63 else value,))
    return node.tensors.get("value")


def _safe(node: Node, content: memoryview, kind: int, name: str) -> Sequence[bytes]:
    """Return the nodes that replace a division."""
    (_, divisor), (output,) = node.inputs, node.outputs
    minus, one, is_minus, safe = (f"{name}/{part}" for part in ("minus", "one", "is_minus", "safe"))
    before = (
        _constant(minus, kind, -1),
        _constant(one, kind, 1),
        _made("Equal", (divisor, minus), is_minus),
        _made("Where", (is_minus, one, divisor), safe),
    )
    if node.kind == "Mod":
        return (*before, _divided(content, safe, output))
    quotient, negative = f"{name}/quotient", f"{name}/negative"
    return (
        *before,
        _divided(content, safe, quotient),
        _made("Neg", (quotient,), negative),
        _made("Where", (is_minus, negative, quotient), output),
    )


def _divided(division: memoryview, divisor: str, output: str) -> bytes:
    """Return a division with another divisor and another output."""
    inputs = itertools.count()
    (found,) = _changed(
        division,
        {
            onnx_graph.NODE_INPUT: lambda name: [divisor.encode() if next(inputs) else bytes(name)],
            onnx_graph.NODE_OUTPUT: lambda _: [output.encode()],
        },
    )
    return found


def _made(kind: str, inputs: Sequence[str], output: str, attribute: bytes = b"") -> bytes:
    parts = [_text(onnx_graph.NODE_INPUT, name) for name in inputs]
    parts += _text(onnx_graph.NODE_OUTPUT, output), _text(onnx_graph.NODE_TYPE, kind)
    return b"".join(parts) + (wire.written(onnx_graph.NODE_ATTRIBUTE, wire.BYTES, attribute) if attribute else b"")


def _constant(name: str, kind: int, value: int) -> bytes:
    raw = struct.pack("<q" if kind == INT64 else "<i", value)
    tensor = wire.written_varint(onnx_graph.DATA_TYPE, kind) + wire.written(onnx_graph.RAW, wire.BYTES, raw)
    attribute = _text(onnx_graph.ATTRIBUTE_NAME, "value")
    attribute += wire.written(onnx_graph.ATTRIBUTE_TENSOR, wire.BYTES, tensor)
    return _made("Constant", (), name, attribute + wire.written_varint(_ATTRIBUTE_KIND, _KIND_TENSOR))


def _text(number: int, text: str) -> bytes:
    return wire.written(number, wire.BYTES, text.encode())
