"""Models that pages ask."""

import zipfile
from pathlib import Path

import onnx
from onnx import TensorProto, helper

COLOURS_CONFIG = """
max_batch_size: 8
input [{ name: "image" data_type: TYPE_FP32 dims: [3, 32, 24] }]
output [{ name: "colours" data_type: TYPE_FP32 dims: [3] label_filename: "labels.txt" }]
"""


def colours_model(path: Path) -> Path:
    """Write a folder's archive with a model that gives the mean of each colour of a picture, and labels for those."""
    graph = helper.make_graph(
        [helper.make_node("ReduceMean", ["image"], ["colours"], axes=[2, 3], keepdims=0)],
        "colours",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", 3, 32, 24])],
        [helper.make_tensor_value_info("colours", TensorProto.FLOAT, ["batch", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    onnx.checker.check_model(model)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("1/model.onnx", model.SerializeToString())
        archive.writestr("config.pbtxt", COLOURS_CONFIG)
        archive.writestr("labels.txt", "red\ngreen\nblue\n")
    return path
