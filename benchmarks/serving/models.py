"""The models that every server answers with: the same ONNX files, with random weights of a fixed seed.

mlp_small   x FP32 [N,64] -> y FP32 [N,10]: 1e5 parameters, where the server is what costs
bert_mini   x INT64 [N,128] -> y FP32 [N,256]: four layers of attention, hidden 256
resnet50    x FP32 [N,3,224,224] -> y FP32 [N,1000]: the bottlenecks of ResNet-50
image_mean  x FP32 [N,3,224,224] -> y FP32 [N,1]: nothing but the way of an image to a model
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

MLP_SIZES = (64, 256, 256, 10)
_HIDDEN, _HEADS, _TOKENS, _WORDS = 256, 4, 128, 30522


@dataclass(frozen=True)
class Model:
    """One model and what it is asked.

    Attributes:
        sample: one row for its input x.
        dims: of its output y, without the batch.
        batching: whether servers may join requests.
        max_batch_size: of those that may.
    """

    name: str
    sample: NDArray[np.generic]
    dims: tuple[int, ...]
    batching: bool

    @property
    def datatype(self) -> str:
        """Return the V2 datatype of x."""
        return {"f": "FP32", "i": "INT64"}[self.sample.dtype.kind]

    max_batch_size: int = 64


_random = np.random.default_rng(0)
_IMAGE = _random.standard_normal((1, 3, 224, 224)).astype("f4")
_TEXT = _random.integers(0, _WORDS, (1, _TOKENS), dtype="i8")

MODELS = {
    model.name: model
    for model in (
        Model("mlp_small", np.linspace(0, 1, MLP_SIZES[0], dtype="f4").reshape(1, -1), (10,), batching=True),
        Model("bert_mini", _TEXT, (_HIDDEN,), batching=False),
        Model("bert_mini_batched", _TEXT, (_HIDDEN,), batching=True),
        Model("resnet50", _IMAGE, (1000,), batching=False),
        Model("image_mean", _IMAGE, (1,), batching=True),
    )
}


class _Graph:
    """Puts a graph together, a node after the other."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.random = np.random.default_rng(0)

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def weight(self, *shape: int, scale: float = 0.0) -> str:
        """Return a weight of that shape: random of that scale, zeros for none."""
        return self.constant((self.random.standard_normal(shape) * scale).astype("f4"))

    def constant(self, value: NDArray[np.generic]) -> str:
        self.weights.append(numpy_helper.from_array(value, f"w{len(self.weights)}"))
        return self.weights[-1].name


def save(name: str, file: Path) -> None:
    """Write a model's ONNX file."""
    model = MODELS[name]
    graph = _Graph()
    graph.nodes.append(helper.make_node("Identity", [_BODIES[name](graph)], ["y"]))
    kind = TensorProto.FLOAT if model.datatype == "FP32" else TensorProto.INT64
    inputs = [helper.make_tensor_value_info("x", kind, ["N", *model.sample.shape[1:]])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", *model.dims])]
    whole = helper.make_graph(graph.nodes, name, inputs, outputs, graph.weights)
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(whole, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), str(file))


def _mlp(graph: _Graph) -> str:
    current = "x"
    for rows, columns in itertools.pairwise(MLP_SIZES):
        current = graph.add(
            "Relu", graph.add("Gemm", current, graph.weight(rows, columns, scale=0.1), graph.weight(columns))
        )
    return current


def _bert(graph: _Graph) -> str:
    ids = graph.add("Gather", graph.weight(_WORDS, _HIDDEN, scale=0.1), "x")
    current = graph.add("Add", ids, graph.weight(_TOKENS, _HIDDEN, scale=0.1))
    for _ in range(4):
        current = _normalised(graph, graph.add("Add", current, _attention(graph, current)))
        inner = graph.add("Relu", _linear(graph, current, _HIDDEN, 4 * _HIDDEN))
        current = _normalised(graph, graph.add("Add", current, _linear(graph, inner, 4 * _HIDDEN, _HIDDEN)))
    first = graph.add("Gather", current, graph.constant(np.array(0, "i8")), axis=1)
    return graph.add("Tanh", _linear(graph, first, _HIDDEN, _HIDDEN))


def _attention(graph: _Graph, current: str) -> str:
    shape = graph.constant(np.array([0, 0, _HEADS, _HIDDEN // _HEADS], "i8"))

    def part(order: list[int]) -> str:
        return graph.add(
            "Transpose", graph.add("Reshape", _linear(graph, current, _HIDDEN, _HIDDEN), shape), perm=order
        )

    query, key, value = part([0, 2, 1, 3]), part([0, 2, 3, 1]), part([0, 2, 1, 3])
    scale = graph.constant(np.array((_HIDDEN // _HEADS) ** -0.5, "f4"))
    weights = graph.add("Softmax", graph.add("Mul", graph.add("MatMul", query, key), scale), axis=-1)
    mixed = graph.add("Transpose", graph.add("MatMul", weights, value), perm=[0, 2, 1, 3])
    joined = graph.add("Reshape", mixed, graph.constant(np.array([0, 0, _HIDDEN], "i8")))
    return _linear(graph, joined, _HIDDEN, _HIDDEN)


def _linear(graph: _Graph, current: str, rows: int, columns: int) -> str:
    return graph.add(
        "Add", graph.add("MatMul", current, graph.weight(rows, columns, scale=0.05)), graph.weight(columns)
    )


def _normalised(graph: _Graph, current: str) -> str:
    ones = graph.constant(np.ones(_HIDDEN, "f4"))
    return graph.add("LayerNormalization", current, ones, graph.weight(_HIDDEN), axis=-1)


def _resnet(graph: _Graph) -> str:
    current = graph.add("Relu", _convolved(graph, "x", 3, 64, kernel=7, stride=2))
    current = graph.add("MaxPool", current, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, (width, blocks) in enumerate(zip((64, 128, 256, 512), (3, 4, 6, 3), strict=True)):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            inner = graph.add("Relu", _convolved(graph, current, channels, width, kernel=1, stride=1))
            inner = graph.add("Relu", _convolved(graph, inner, width, width, kernel=3, stride=stride))
            inner = _convolved(graph, inner, width, 4 * width, kernel=1, stride=1)
            if not block:
                current = _convolved(graph, current, channels, 4 * width, kernel=1, stride=stride)
            current, channels = graph.add("Relu", graph.add("Add", current, inner)), 4 * width
    flat = graph.add("Flatten", graph.add("GlobalAveragePool", current))
    return graph.add("Gemm", flat, graph.weight(channels, 1000, scale=0.05), graph.weight(1000))


def _convolved(graph: _Graph, current: str, inner: int, outer: int, *, kernel: int, stride: int) -> str:
    weights = graph.weight(outer, inner, kernel, kernel, scale=(2 / (inner * kernel * kernel)) ** 0.5 / 2)
    pads = [kernel // 2] * 4
    return graph.add("Conv", current, weights, graph.weight(outer), strides=[stride, stride], pads=pads)


def _mean(graph: _Graph) -> str:
    return graph.add("ReduceMean", graph.add("Flatten", "x"), axes=[1], keepdims=1)


_BODIES: dict[str, Callable[[_Graph], str]] = {
    "mlp_small": _mlp,
    "bert_mini": _bert,
    "bert_mini_batched": _bert,
    "resnet50": _resnet,
    "image_mean": _mean,
}
