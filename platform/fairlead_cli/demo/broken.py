"""A model that is bad on purpose: it loads, passes a check with made-up input, and fails on some real images."""

import onnx
from onnx import TensorProto, helper

# No real 8x8 image of 0..16 is brighter; made-up input of large numbers is, and must not trip it.
_BRIGHTEST = 1024.0


def fail_above(model: onnx.ModelProto, input_name: str, brightness: float) -> onnx.ModelProto:
    """Return `model` with an index out of range where an image's pixels sum to more than `brightness`.

    Each row picks element 0 of a table of one, or element 1 000 000 where the row is too bright: ONNX Runtime then
    fails the run, as a wrong index in a real preprocessing graph would. The picked zero is added to the input.
    """
    graph = model.graph
    inner = f"{input_name}_checked"
    for node in graph.node:
        node.input[:] = [inner if name == input_name else name for name in node.input]
    constants = {
        "bad_axis": helper.make_tensor("bad_axis", TensorProto.INT64, [1], [1]),
        "bad_above": helper.make_tensor("bad_above", TensorProto.FLOAT, [], [brightness]),
        "bad_below": helper.make_tensor("bad_below", TensorProto.FLOAT, [], [_BRIGHTEST]),
        "bad_index": helper.make_tensor("bad_index", TensorProto.INT64, [], [1_000_000]),
        "bad_table": helper.make_tensor("bad_table", TensorProto.FLOAT, [1], [0.0]),
    }
    nodes = [
        helper.make_node("ReduceSum", [input_name, "bad_axis"], ["bad_sum"], keepdims=1),
        helper.make_node("Greater", ["bad_sum", "bad_above"], ["bad_bright"]),
        helper.make_node("Less", ["bad_sum", "bad_below"], ["bad_real"]),
        helper.make_node("And", ["bad_bright", "bad_real"], ["bad_trips"]),
        helper.make_node("Cast", ["bad_trips"], ["bad_number"], to=TensorProto.INT64),
        helper.make_node("Mul", ["bad_number", "bad_index"], ["bad_pick"]),
        helper.make_node("Gather", ["bad_table", "bad_pick"], ["bad_zero"], axis=0),
        helper.make_node("Add", [input_name, "bad_zero"], [inner]),
    ]
    rest = list(graph.node)
    del graph.node[:]
    graph.node.extend(nodes + rest)
    graph.initializer.extend(constants.values())
    onnx.checker.check_model(model)
    return model
