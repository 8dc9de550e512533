"""Divisions whose divisor may be -1 are rewritten: each answers what it did, and none ends the process."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from serving_runtime.backends.onnx import division
from serving_runtime.backends.onnx.backend import OnnxRuntimeBackend
from serving_runtime.config.model import BackendOptions
from tests.serving_runtime import onnx_models

INT64, INT32, FLOAT = TensorProto.INT64, TensorProto.INT32, TensorProto.FLOAT
node = helper.make_node


def number(value: object, name: str, kind: str = "i8") -> onnx.TensorProto:
    return numpy_helper.from_array(np.array(value, kind), name)


def graph(file: Path, nodes: Sequence[onnx.NodeProto], *tensors: onnx.TensorProto, kind: int = INT64) -> Path:
    """Write a graph of x and w, [N,1], that answers y."""
    rows = (kind, ("N", 1))
    return onnx_models.save(file, nodes, [("x", *rows), ("w", *rows)], [("y", *rows)], initializers=tensors)


def rewritten(file: Path) -> bytes | None:
    return division.rewritten(memoryview(file.read_bytes()))


def run(file: Path, *inputs: Any) -> Any:
    return OnnxRuntimeBackend({}).load(file, BackendOptions({})).run(inputs)[0]


@pytest.mark.parametrize("kind", [INT32, INT64], ids=["INT32", "INT64"])
@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_answers_are_those_of_integers(tmp_path: Path, operator: str, kind: int) -> None:
    file = graph(tmp_path / "model.onnx", [node(operator, ["x", "w"], ["y"])], kind=kind)
    datatype = helper.tensor_dtype_to_np_dtype(kind)
    least = int(np.iinfo(datatype).min)
    some = np.array([least, least + 1, -8, -1, 0, 1, 7], datatype)
    x, w = (each.reshape(-1, 1) for each in np.meshgrid(some, some[some != 0]))
    pairs = list(zip(x.ravel().tolist(), w.ravel().tolist(), strict=True))
    if operator == "Div":
        exact = [abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) for a, b in pairs]
        expected = [value if value < -least else least for value in exact]
    else:
        expected = [a % b for a, b in pairs]
    assert run(file, x, w).ravel().tolist() == expected


def test_a_division_within_a_branch_is_rewritten(tmp_path: Path) -> None:
    """Its dividend and its type are those of the graph around it."""
    branches = [
        helper.make_graph(
            [node(kind, ["x", "w"], [kind])], kind, [], [helper.make_tensor_value_info(kind, INT64, None)]
        )
        for kind in ("Div", "Add")
    ]
    nodes = [
        node("ReduceMax", ["x"], ["most"], keepdims=0),
        node("Less", ["most", "zero"], ["negative"]),
        node("If", ["negative"], ["y"], then_branch=branches[0], else_branch=branches[1]),
    ]
    file = graph(tmp_path / "model.onnx", nodes, number(0, "zero"))
    assert run(file, np.array([[-(2**63)]]), np.array([[-1]])).tolist() == [[-(2**63)]]
    assert run(file, np.array([[3]]), np.array([[-1]])).tolist() == [[2]]


def test_weights_beside_a_file_are_found(tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    graph(file, [node("Add", ["x", "large"], ["sum"]), node("Div", ["sum", "w"], ["y"])], number([[2]], "large"))
    onnx.save(onnx.load(file), file, save_as_external_data=True, location="weights", size_threshold=0)
    assert rewritten(file)
    assert run(file, np.array([[6]]), np.array([[-1]])).tolist() == [[-8]]


@pytest.mark.parametrize(
    ("nodes", "tensors"),
    [
        ([node("Div", ["x", "c"], ["y"])], [number([[4]], "c")]),
        ([node("Constant", [], ["c"], value=number(4, "")), node("Mod", ["x", "c"], ["y"])], []),
        ([node("Constant", [], ["c"], value_int=4), node("Div", ["x", "c"], ["y"])], []),
        ([node("Div", ["c", "x"], ["y"])], [number([[4]], "c")]),
        (
            [
                node("Shape", ["x"], ["shape"]),
                node("Gather", ["shape", "c"], ["rows"]),
                node("Mul", ["rows", "rows"], ["product"]),
                node("Div", ["product", "x"], ["y"]),
            ],
            [number([[0]], "c")],
        ),
        (
            [
                node("Cast", ["x"], ["f"], to=FLOAT),
                node("Div", ["f", "f"], ["q"]),
                node("Cast", ["q"], ["y"], to=INT64),
            ],
            [],
        ),
        ([node("Div", ["x", "w"], ["y"], domain="of.its.own")], []),
    ],
    ids=["constant", "constant node", "number", "constant dividend", "shapes", "floats", "another domain"],
)
def test_a_division_that_cannot_trap_stays(
    tmp_path: Path, nodes: list[onnx.NodeProto], tensors: list[onnx.TensorProto]
) -> None:
    assert rewritten(graph(tmp_path / "model.onnx", nodes, *tensors)) is None


@pytest.mark.parametrize(
    ("nodes", "tensors"),
    [
        ([node("Div", ["x", "c"], ["y"])], [number([[4], [-1]], "c")]),
        ([node("Div", ["x", "c"], ["y"])], [number([[4]] * 100, "c")]),
        ([node("Div", ["c", "w"], ["y"])], [number([[-(2**63)]], "c")]),
        ([node("Identity", ["w"], ["v"]), node("Mod", ["x", "v"], ["y"])], []),
        ([node("Where", ["b", "x", "w"], ["v"]), node("Div", ["v", "v"], ["y"])], [number([[1]], "b", "?")]),
        ([node("Div", ["x", "w"], ["y"])], [number([[4]], "w")]),
    ],
    ids=["-1 in a constant", "many values", "least constant", "through others", "chosen", "what requests may change"],
)
def test_a_division_that_could_trap_does_not_stay(
    tmp_path: Path, nodes: list[onnx.NodeProto], tensors: list[onnx.TensorProto]
) -> None:
    content = rewritten(graph(tmp_path / "model.onnx", nodes, *tensors))
    assert content is not None
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
