"""Small ONNX models made for tests, and the folders they are served from."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Dim = int | str

CONTROLS = ("start", "end", "ready", "corrid")


def save(
    file: Path,
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[tuple[str, int, Sequence[Dim]]],
    outputs: Sequence[tuple[str, int, Sequence[Dim]]],
    *,
    initializers: Sequence[onnx.TensorProto] = (),
    opset: int = 17,
) -> Path:
    """Write a model; tensors are (name, onnx type, shape)."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in outputs],
        list(initializers),
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(file))
    return file


def identity(file: Path, kind: int = TensorProto.FLOAT, shape: Sequence[Dim] = ("N", 4), *, opset: int = 17) -> Path:
    """x -> y, the same."""
    node = helper.make_node("Identity", ["x"], ["y"])
    return save(file, [node], [("x", kind, shape)], [("y", kind, shape)], opset=opset)


def add(file: Path, kind: int = TensorProto.INT32, shape: Sequence[Dim] = ("N", 4)) -> Path:
    """a, b -> sum, difference."""
    nodes = [helper.make_node("Add", ["a", "b"], ["sum"]), helper.make_node("Sub", ["a", "b"], ["difference"])]
    tensors = [("a", kind, shape), ("b", kind, shape)]
    return save(file, nodes, tensors, [("sum", kind, shape), ("difference", kind, shape)])


def scaled(file: Path) -> Path:
    """x [N,2], factor [N or 1, 1] (the file's own is 10) -> y: x * factor."""
    node = helper.make_node("Mul", ["x", "factor"], ["y"])
    own = numpy_helper.from_array(np.full((1, 1), 10, "f4"), "factor")
    inputs = [("x", TensorProto.FLOAT, ("N", 2)), ("factor", TensorProto.FLOAT, ("M", 1))]
    return save(file, [node], inputs, [("y", TensorProto.FLOAT, ("N", 2))], initializers=[own])


def running_total(file: Path) -> Path:
    """x [N,2], total_in [N,2] -> sum: total_in + x, total_out: the same."""
    nodes = [
        helper.make_node("Add", ["x", "total_in"], ["total_out"]),
        helper.make_node("Identity", ["total_out"], ["sum"]),
    ]
    inputs = [("x", TensorProto.FLOAT, ("N", 2)), ("total_in", TensorProto.FLOAT, ("N", 2))]
    outputs = [("sum", TensorProto.FLOAT, ("N", 2)), ("total_out", TensorProto.FLOAT, ("N", 2))]
    return save(file, nodes, inputs, outputs)


def segments(file: Path) -> Path:
    """x [L] of all requests, ends [requests + 1] INT32: where each begins -> sum [N,1] of each, doubled [L]."""
    number = numpy_helper.from_array
    nodes = [
        helper.make_node("CumSum", ["x", "zero"], ["running"]),
        helper.make_node("Concat", ["nought", "running"], ["before"], axis=0),
        helper.make_node("Gather", ["before", "ends"], ["at"]),
        helper.make_node("Slice", ["at", "ones", "last"], ["later"]),
        helper.make_node("Slice", ["at", "zeros", "but_one"], ["earlier"]),
        helper.make_node("Sub", ["later", "earlier"], ["flat"]),
        helper.make_node("Unsqueeze", ["flat", "ones"], ["sum"]),
        helper.make_node("Mul", ["x", "two"], ["doubled"]),
    ]
    constants = [
        number(np.array(0, "i4"), "zero"),
        number(np.array([0], "f4"), "nought"),
        number(np.array([1], "i8"), "ones"),
        number(np.array([0], "i8"), "zeros"),
        number(np.array([2**31], "i8"), "last"),
        number(np.array([-1], "i8"), "but_one"),
        number(np.array(2, "f4"), "two"),
    ]
    inputs = [("x", TensorProto.FLOAT, ("L",)), ("ends", TensorProto.INT32, ("M",))]
    outputs = [("sum", TensorProto.FLOAT, ("N", 1)), ("doubled", TensorProto.FLOAT, ("L",))]
    return save(file, nodes, inputs, outputs, initializers=constants)


def accumulator(file: Path, *, batched: bool = True) -> Path:
    """x [N,2], total_in [N,2], start, end, ready [N,1] INT32, corrid [N,1] UINT64 -> sum: total_in + x, total_out: the
    same, told [N,4] INT64: start, end, ready, corrid, row [N,1] INT64: the place in the batch.
    """
    front = ("N",) if batched else ()
    number = numpy_helper.from_array
    nodes = [
        helper.make_node("Add", ["x", "total_in"], ["total_out"]),
        helper.make_node("Identity", ["total_out"], ["sum"]),
        *[helper.make_node("Cast", [name], [f"{name}_64"], to=TensorProto.INT64) for name in CONTROLS],
        helper.make_node("Concat", [f"{name}_64" for name in CONTROLS], ["told"], axis=-1),
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Range", ["zero", "rows", "one"], ["numbers"]),
        helper.make_node("Unsqueeze", ["numbers", "last"], ["row"]),
    ]
    inputs = [
        ("x", TensorProto.FLOAT, (*front, 2)),
        ("total_in", TensorProto.FLOAT, (*front, 2)),
        *[(name, TensorProto.INT32, (*front, 1)) for name in CONTROLS[:3]],
        ("corrid", TensorProto.UINT64, (*front, 1)),
    ]
    outputs: list[tuple[str, int, Sequence[Dim]]] = [
        ("sum", TensorProto.FLOAT, (*front, 2)),
        ("total_out", TensorProto.FLOAT, (*front, 2)),
        ("told", TensorProto.INT64, (*front, 4)),
        ("row", TensorProto.INT64, ("N", 1)),
    ]
    constants = [
        number(np.array(0, "i8"), "zero"),
        number(np.array(1, "i8"), "one"),
        number(np.array([1], "i8"), "last"),
    ]
    return save(file, nodes, inputs, outputs, initializers=constants)


def mlp(file: Path, sizes: Sequence[int] = (8, 16, 3)) -> Path:
    """x -> y through dense layers with fixed random weights."""
    random = np.random.default_rng(7)
    nodes, weights, current = [], [], "x"
    for layer, (rows, columns) in enumerate(itertools.pairwise(sizes)):
        weights.append(numpy_helper.from_array(random.standard_normal((rows, columns)).astype("f4"), f"w{layer}"))
        nodes.append(helper.make_node("MatMul", [current, f"w{layer}"], [f"h{layer}"]))
        nodes.append(helper.make_node("Tanh", [f"h{layer}"], [f"t{layer}"]))
        current = f"t{layer}"
    nodes.append(helper.make_node("Identity", [current], ["y"]))
    outputs = [("y", TensorProto.FLOAT, ("N", sizes[-1]))]
    return save(file, nodes, [("x", TensorProto.FLOAT, ("N", sizes[0]))], outputs, initializers=weights)


def picky(file: Path) -> Path:
    """x [N,1] INT64 -> y: row x of a table of four; the model fails for an x outside of it."""
    table = numpy_helper.from_array(np.arange(8, dtype="f4").reshape(4, 2), "table")
    node = helper.make_node("Gather", ["table", "x"], ["y"])
    outputs = [("y", TensorProto.FLOAT, ("N", 1, 2))]
    return save(file, [node], [("x", TensorProto.INT64, ("N", 1))], outputs, initializers=[table])


def slow(file: Path, size: int = 256, rounds: int = 3000) -> Path:
    """x [N,size] -> y [N,size], some tens of milliseconds a run: long enough for requests to queue behind one."""
    weight = numpy_helper.from_array(np.full((size, size), 1 / size, dtype="f4"), "w")
    shape = ("N", size)
    body = helper.make_graph(
        [helper.make_node("MatMul", ["before", "w"], ["after"]), helper.make_node("Identity", ["go"], ["going"])],
        "round",
        [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("before", TensorProto.FLOAT, shape),
        ],
        [
            helper.make_tensor_value_info("going", TensorProto.BOOL, []),
            helper.make_tensor_value_info("after", TensorProto.FLOAT, shape),
        ],
    )
    count = numpy_helper.from_array(np.array(rounds, dtype="i8"), "rounds")
    node = helper.make_node("Loop", ["rounds", "", "x"], ["y"], body=body)
    tensors = [("x", TensorProto.FLOAT, shape)], [("y", TensorProto.FLOAT, shape)]
    return save(file, [node], *tensors, initializers=[weight, count])


def configure(folder: Path, text: str) -> Path:
    """Write config.pbtxt into a model's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.pbtxt").write_text(text)
    return folder


def ending(file: Path) -> Path:
    """x [N,1] INT64 -> y: divides the least integer by -1, in a function of the file, and so ends its process."""
    least = numpy_helper.from_array(np.array([-(2**63)]), "least")
    minus = numpy_helper.from_array(np.array([-1]), "minus")
    nodes = [
        helper.make_node("Add", ["x", "least"], ["sum"]),
        helper.make_node("Part", ["sum", "minus"], ["y"], domain="test"),
    ]
    tensor = TensorProto.INT64, ("N", 1)
    save(file, nodes, [("x", *tensor)], [("y", *tensor)], initializers=[least, minus])
    opset = helper.make_opsetid("", 17)
    part = helper.make_function(
        "test", "Part", ["a", "b"], ["c"], [helper.make_node("Div", ["a", "b"], ["c"])], [opset]
    )
    model = onnx.load(file)
    model.opset_import.append(helper.make_opsetid("test", 1))
    model.functions.append(part)
    onnx.save(model, file)
    return file
