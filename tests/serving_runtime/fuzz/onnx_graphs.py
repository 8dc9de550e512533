"""ONNX graphs made of any bytes: each byte is a choice, so that most are models of the right types."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

_MOST_NODES = 6
_MOST_VALUES = 64
_FLOAT, _INT, _BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL

_DIMS = (1, 2, 4, 3, 0, 7, 64)
_NUMBERS = (1, 0, 2, -1, 4, 3, 5, 8, 100, 4096, 65536, 1 << 20, 1 << 31, -(1 << 31), 1 << 40, (1 << 63) - 1, -(1 << 63))

_SAME = 0
"""The kind of an operator's answer: as of its first input."""

_AXIS: dict[str, Sequence[Any]] = {"axis": (0, 1, -1, 9)}

# Operator: what it takes, what it answers, and the attributes that bytes choose. "t" is any tensor, FP32 or INT64, and
# "=" another of the same kind; "x" is FP32, "k" INT64, "b" BOOL, "s" a list and "n" one number of INT64 in the file.
_OPERATORS: tuple[tuple[str, str, int, dict[str, Sequence[Any]]], ...] = (
    ("Identity", "t", _SAME, {}),
    ("Add", "t=", _SAME, {}),
    ("Mul", "t=", _SAME, {}),
    ("Div", "t=", _SAME, {}),
    ("Mod", "k=", _SAME, {"fmod": (0, 1)}),
    ("Pow", "t=", _SAME, {}),
    ("MatMul", "t=", _SAME, {}),
    ("Gemm", "x==", _SAME, {"transA": (0, 1), "transB": (0, 1)}),
    ("Cast", "x", _INT, {"to": (_INT,)}),
    ("Cast", "k", _FLOAT, {"to": (_FLOAT,)}),
    ("Cast", "t", _BOOL, {"to": (_BOOL,)}),
    ("Softmax", "x", _SAME, _AXIS),
    ("ReduceSum", "ts", _SAME, {"keepdims": (0, 1)}),
    ("ReduceMax", "t", _SAME, {"axes": ([0], [1], [-1], [7]), "keepdims": (0, 1)}),
    ("ArgMax", "x", _INT, _AXIS),
    ("CumSum", "tn", _SAME, {"exclusive": (0, 1), "reverse": (0, 1)}),
    ("Shape", "t", _INT, {"start": (0, -1, 5), "end": (9, 1, -1)}),
    ("Reshape", "ts", _SAME, {"allowzero": (0, 1)}),
    ("Reshape", "tk", _SAME, {"allowzero": (0, 1)}),
    ("Squeeze", "ts", _SAME, {}),
    ("Unsqueeze", "ts", _SAME, {}),
    ("Flatten", "t", _SAME, _AXIS),
    ("Transpose", "t", _SAME, {"perm": ([1, 0], [0, 1], [0, 0], [0, 7], [0, 1, 2])}),
    ("Expand", "ts", _SAME, {}),
    ("Expand", "tk", _SAME, {}),
    ("Tile", "ts", _SAME, {}),
    ("Tile", "tk", _SAME, {}),
    ("ConstantOfShape", "k", _FLOAT, {}),
    ("Range", "nnn", _INT, {}),
    ("Pad", "ts=", _SAME, {"mode": ("constant", "reflect", "edge")}),
    ("Slice", "tssss", _SAME, {}),
    ("Slice", "tkss", _SAME, {}),
    ("Concat", "t=", _SAME, _AXIS),
    ("Gather", "tk", _SAME, _AXIS),
    ("GatherElements", "tk", _SAME, _AXIS),
    ("GatherND", "tk", _SAME, {"batch_dims": (0, 1, 2)}),
    ("ScatterElements", "tk=", _SAME, {**_AXIS, "reduction": ("none", "add", "mul")}),
    ("ScatterND", "tk=", _SAME, {"reduction": ("none", "add")}),
    ("OneHot", "kns", _INT, _AXIS),
    ("NonZero", "t", _INT, {}),
    ("TopK", "ts", _SAME, {**_AXIS, "largest": (0, 1)}),
    ("Unique", "t", _SAME, _AXIS),
    ("Where", "bt=", _FLOAT, {}),
    ("Equal", "t=", _BOOL, {}),
    ("EyeLike", "t", _SAME, {"k": (0, 1, -1, 1 << 40)}),
    ("Trilu", "tn", _SAME, {"upper": (0, 1)}),
    ("DepthToSpace", "x", _SAME, {"blocksize": (2, 1, 0, 1 << 20, -1)}),
    ("SpaceToDepth", "x", _SAME, {"blocksize": (2, 1, 0, 1 << 20, -1)}),
    (
        "Conv",
        "x=",
        _SAME,
        {"group": (1, 2, 0), "dilations": ([1], [0], [1, 1]), "pads": ([0, 0], [-1, 9], [1 << 30] * 4)},
    ),
    ("MaxPool", "x", _SAME, {"kernel_shape": ([1], [2, 2], [1 << 30]), "strides": ([1], [0], [1, 1])}),
    ("ReverseSequence", "ts", _SAME, {"batch_axis": (0, 1), "time_axis": (1, 0)}),
    ("Einsum", "x=", _SAME, {"equation": ("ij,ij->i", "i,j->ij", "ij,jk->ik", "ii,i->i", "...,...", "abcdef,ghijkl")}),
    ("Compress", "tb", _SAME, _AXIS),
    ("LayerNormalization", "x=", _SAME, _AXIS),
)


class _Choices:
    """Bytes, each taken once; zeros when there are no more."""

    def __init__(self, content: bytes) -> None:
        self._content = iter(content)
        self.left = len(content)

    def of(self, choices: Sequence[Any]) -> Any:
        self.left -= 1
        return choices[next(self._content, 0) % len(choices)]


class _Graph:
    """What was chosen so far: operators, tensors of the file, and the names that there are of each kind."""

    def __init__(self, choices: _Choices) -> None:
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []
        self._choices = choices
        self._names = {_FLOAT: ["x"], _INT: ["k"], _BOOL: list[str]()}

    def add_node(self) -> None:
        operator, takes, answer, attributes = self._choices.of(_OPERATORS)
        first = 0
        inputs = []
        for role in takes:
            kind = first if role == "=" else self._choices.of((_FLOAT, _INT)) if role == "t" else _KINDS[role]
            first = first or (kind if role != "b" else 0)
            inputs.append(self._tensor(kind, role))
        given = {name: self._choices.of(values) for name, values in attributes.items()}
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [name], **given))
        self._names[answer or first].append(name)

    def _tensor(self, kind: int, role: str) -> str:
        """Return a tensor that there is, or one that is added to the file."""
        names = self._names[kind]
        if names and role not in "sn" and self._choices.of((True, True, False)):
            return str(self._choices.of(names[::-1]))
        ranks = {"s": (1,), "n": (0,)}.get(role, (2, 1, 0, 3, 4))
        shape = [self._choices.of(_DIMS) for _ in range(self._choices.of(ranks))]
        count = int(np.prod(shape))
        values = [self._choices.of(_NUMBERS) for _ in range(min(count, 4))]
        numbers = np.resize(np.array(values or [0], "i8"), shape) if count <= _MOST_VALUES else np.zeros(shape, "i8")
        name = f"c{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(numbers.astype(helper.tensor_dtype_to_np_dtype(kind)), name))
        return name


_KINDS = {"x": _FLOAT, "k": _INT, "b": _BOOL, "s": _INT, "n": _INT}


def built(content: bytes) -> bytes:
    """Return an ONNX file of up to six operators on inputs x [N,4] FP32 and k [N,4] INT64."""
    choices = _Choices(content)
    graph = _Graph(choices)
    graph.add_node()
    while choices.left > 0 and len(graph.nodes) < _MOST_NODES:
        graph.add_node()
    return _model(graph).SerializeToString()


def _model(graph: _Graph) -> ModelProto:
    made = helper.make_graph(
        graph.nodes,
        "fuzzed",
        [
            helper.make_tensor_value_info("x", _FLOAT, ["N", 4]),
            helper.make_tensor_value_info("k", _INT, ["N", 4]),
        ],
        [helper.make_empty_tensor_value_info(graph.nodes[-1].output[0])],
        graph.tensors,
    )
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
