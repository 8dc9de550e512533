"""The encoder and the pooling as ONNX graphs, made of the weights of a BERT model in the safetensors format."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Weights = Mapping[str, np.ndarray]
_OPSET, _IR_VERSION = 17, 8


def read_weights(file: Path) -> dict[str, np.ndarray]:
    """Return the tensors of a safetensors file: 8 bytes with the length of the header, the header as JSON, the data."""
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header.pop("__metadata__", None)
    kinds = {"F32": "<f4", "I64": "<i8"}
    weights = {}
    for name, entry in header.items():
        start, end = (8 + length + offset for offset in entry["data_offsets"])
        weights[name] = np.frombuffer(content[start:end], kinds[entry["dtype"]]).reshape(entry["shape"])
    return weights


class Graph:
    """An ONNX graph that grows node by node; a tensor is its name."""

    def __init__(self) -> None:
        self._nodes: list[onnx.NodeProto] = []
        self._constants: dict[str, np.ndarray] = {}

    def add(self, op: str, *inputs: str, **attributes: object) -> str:
        """Add a node of one output and return that."""
        output = f"{op.lower()}_{len(self._nodes)}"
        self._nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def constant(self, name: str, value: np.ndarray) -> str:
        self._constants[name] = value
        return name

    def floats(self, *values: float) -> str:
        return self.constant(f"floats_{values}", np.array(values, np.float32))

    def integers(self, *values: int) -> str:
        return self.constant(f"integers_{values}", np.array(values, np.int64))

    def model(self, inputs: Sequence[onnx.ValueInfoProto], output: onnx.ValueInfoProto, of: str) -> onnx.ModelProto:
        """Return the checked model whose output is the tensor `of`."""
        nodes = [*self._nodes, helper.make_node("Identity", [of], [output.name])]
        constants = [numpy_helper.from_array(value, name) for name, value in self._constants.items()]
        graph = helper.make_graph(nodes, "graph", inputs, [output], constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
        onnx.checker.check_model(made)
        return made


def encoder(weights: Weights, *, heads: int, epsilon: float) -> onnx.ModelProto:
    """Return BERT's encoder.

    input_ids INT64 [batch, tokens], attention_mask INT64 [batch, tokens] -> hidden FP32 [batch, tokens, width]
    """
    graph = Graph()
    width = weights["embeddings.word_embeddings.weight"].shape[1]

    def weight(name: str) -> str:
        return graph.constant(name, weights[name])

    def linear(x: str, name: str) -> str:
        turned = graph.constant(f"{name}.weight", np.ascontiguousarray(weights[f"{name}.weight"].T))
        return graph.add("Add", graph.add("MatMul", x, turned), weight(f"{name}.bias"))

    def normed(x: str, name: str) -> str:
        scale, bias = weight(f"{name}.weight"), weight(f"{name}.bias")
        return graph.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=epsilon)

    def by_heads(x: str, order: Sequence[int]) -> str:
        split = graph.add("Reshape", x, graph.integers(0, 0, heads, width // heads))
        return graph.add("Transpose", split, perm=order)

    def gelu(x: str) -> str:
        error = graph.add("Erf", graph.add("Mul", x, graph.floats(2**-0.5)))
        return graph.add("Mul", graph.add("Mul", x, graph.add("Add", error, graph.floats(1.0))), graph.floats(0.5))

    tokens = graph.add("Shape", "input_ids", start=1, end=2)
    positions = graph.add("Slice", weight("embeddings.position_embeddings.weight"), graph.integers(0), tokens)
    kind = graph.constant("sentence", weights["embeddings.token_type_embeddings.weight"][0])
    x = graph.add("Gather", weight("embeddings.word_embeddings.weight"), "input_ids")
    x = normed(graph.add("Add", graph.add("Add", x, positions), kind), "embeddings.LayerNorm")
    mask = graph.add("Cast", "attention_mask", to=TensorProto.FLOAT)
    padding = graph.add("Mul", graph.add("Sub", graph.floats(1.0), mask), graph.floats(-10000.0))
    padding = graph.add("Unsqueeze", padding, graph.integers(1, 2))
    layers = {int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer.")}
    for name in (f"encoder.layer.{number}" for number in sorted(layers)):
        query = by_heads(linear(x, f"{name}.attention.self.query"), (0, 2, 1, 3))
        key = by_heads(linear(x, f"{name}.attention.self.key"), (0, 2, 3, 1))
        value = by_heads(linear(x, f"{name}.attention.self.value"), (0, 2, 1, 3))
        scores = graph.add("Mul", graph.add("MatMul", query, key), graph.floats((width // heads) ** -0.5))
        shares = graph.add("Softmax", graph.add("Add", scores, padding), axis=-1)
        seen = graph.add("Transpose", graph.add("MatMul", shares, value), perm=(0, 2, 1, 3))
        seen = linear(graph.add("Reshape", seen, graph.integers(0, 0, width)), f"{name}.attention.output.dense")
        x = normed(graph.add("Add", x, seen), f"{name}.attention.output.LayerNorm")
        thought = linear(gelu(linear(x, f"{name}.intermediate.dense")), f"{name}.output.dense")
        x = normed(graph.add("Add", x, thought), f"{name}.output.LayerNorm")
    inputs = [_tensor(name, TensorProto.INT64, "batch", "tokens") for name in ("input_ids", "attention_mask")]
    return graph.model(inputs, _tensor("hidden", TensorProto.FLOAT, "batch", "tokens", width), x)


def pooling(width: int) -> onnx.ModelProto:
    """Return how alike two sentences are: the cosine of the means of their tokens' vectors.

    first, second FP32 [batch, tokens, width], their masks INT64 [batch, tokens] -> similarity FP32 [batch, 1]
    """
    graph = Graph()

    def sentence(hidden: str, mask: str) -> str:
        there = graph.add("Unsqueeze", graph.add("Cast", mask, to=TensorProto.FLOAT), graph.integers(2))
        total = graph.add("ReduceSum", graph.add("Mul", hidden, there), graph.integers(1), keepdims=0)
        mean = graph.add("Div", total, graph.add("ReduceSum", there, graph.integers(1), keepdims=0))
        return graph.add("Div", mean, graph.add("ReduceL2", mean, axes=[1]))

    product = graph.add("Mul", sentence("first", "first_mask"), sentence("second", "second_mask"))
    cosine = graph.add("ReduceSum", product, graph.integers(1))
    inputs = []
    for name in ("first", "second"):
        inputs.append(_tensor(name, TensorProto.FLOAT, "batch", f"{name}_tokens", width))
        inputs.append(_tensor(f"{name}_mask", TensorProto.INT64, "batch", f"{name}_tokens"))
    return graph.model(inputs, _tensor("similarity", TensorProto.FLOAT, "batch", 1), cosine)


def _tensor(name: str, kind: int, *shape: int | str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)
