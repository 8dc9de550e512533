"""A model that is wrong on purpose: as fast and as free of errors as the right one, with some classes mixed up."""

from collections.abc import Sequence

import onnx
from onnx import TensorProto, helper


def mixed_up(classes: int, mixed: Sequence[int]) -> list[int]:
    """Return what is answered for each class: for those in `mixed` the next of them, for its last the first."""
    if len(mixed) < 2 or len(set(mixed)) != len(mixed) or not all(0 <= each < classes for each in mixed):
        raise ValueError(
            f"cannot mix up {list(mixed)}; expected two or more of the classes 0 to {classes - 1}, each once"
        )
    answered = list(range(classes))
    for each, following in zip(mixed, [*mixed[1:], mixed[0]], strict=True):
        answered[each] = following
    return answered


def mix_up(model: onnx.ModelProto, label: str, probabilities: str, answered: Sequence[int]) -> onnx.ModelProto:
    """Return `model` with each class answered as `answered` says.

    The outputs `label` (the number of a class for each row) and `probabilities` (rows x classes) still agree with each
    other, so that only the right answers show that they are wrong. It costs a `Gather` on each of them.
    """
    graph = model.graph
    tensors = [output.name for output in graph.output if output.type.HasField("tensor_type")]
    for name in (label, probabilities):
        if name not in tensors:
            raise ValueError(f"the model has no output tensor {name!r}; it has {', '.join(tensors) or 'none'}")
    right = {name: f"{name}_right" for name in (label, probabilities)}
    for node in graph.node:
        node.input[:] = [right.get(name, name) for name in node.input]
        node.output[:] = [right.get(name, name) for name in node.output]
    columns = [answered.index(each) for each in range(len(answered))]
    graph.initializer.extend(
        [
            helper.make_tensor("mixed_labels", TensorProto.INT64, [len(answered)], answered),
            helper.make_tensor("mixed_columns", TensorProto.INT64, [len(columns)], columns),
        ]
    )
    graph.node.extend(
        [
            helper.make_node("Gather", ["mixed_labels", right[label]], [label], axis=0),
            helper.make_node("Gather", [right[probabilities], "mixed_columns"], [probabilities], axis=1),
        ]
    )
    onnx.checker.check_model(model)
    return model
