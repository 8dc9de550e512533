"""Classes that are mixed up, in a graph as small as can be."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from fairlead_cli.demo.mistaken import mix_up, mixed_up


def classifier() -> onnx.ModelProto:
    """Return a model whose probabilities are its input and whose label is the largest; a third output uses both."""
    graph = helper.make_graph(
        [
            helper.make_node("Identity", ["x"], ["probabilities"]),
            helper.make_node("ArgMax", ["probabilities"], ["label"], axis=1, keepdims=0),
            helper.make_node("Identity", ["label"], ["first"]),
        ],
        "classifier",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 4])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
            helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [None, 4]),
            helper.make_tensor_value_info("first", TensorProto.INT64, [None]),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("mixed", "answered"),
    [
        pytest.param((0, 1), [1, 0, 2, 3], id="two change places"),
        pytest.param((3, 0, 1), [1, 3, 2, 0], id="three go round, in any order"),
    ],
)
def test_the_named_classes_are_answered_as_the_next_of_them(mixed: tuple[int, ...], answered: list[int]) -> None:
    assert mixed_up(4, mixed) == answered


@pytest.mark.parametrize("mixed", [(), (1,), (1, 1), (0, 4), (-1, 0)], ids=str)
def test_what_cannot_be_mixed_up_is_refused(mixed: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"cannot mix up .*; expected two or more of the classes 0 to 3, each once"):
        mixed_up(4, mixed)


def test_label_and_probabilities_are_wrong_alike_and_other_outputs_stay() -> None:
    answered = mixed_up(4, (3, 0, 1))
    mistaken = mix_up(classifier(), "label", "probabilities", answered).SerializeToString()
    rows = (np.eye(4) * 0.7 + 0.075).astype(np.float32)

    label, probabilities, first = onnxruntime.InferenceSession(mistaken).run(
        ["label", "probabilities", "first"], {"x": rows}
    )

    assert label.tolist() == answered
    assert probabilities.argmax(axis=1).tolist() == answered
    np.testing.assert_array_equal(np.sort(probabilities), np.sort(rows))
    assert first.tolist() == [0, 1, 2, 3]


def test_a_model_without_the_output_is_refused_with_those_it_has() -> None:
    with pytest.raises(ValueError, match="no output tensor 'scores'; it has label, probabilities, first"):
        mix_up(classifier(), "label", "scores", mixed_up(4, (0, 1)))
