"""Outputs as their highest classes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from serving_runtime import proto
from serving_runtime.common.datatypes import DATATYPES
from serving_runtime.common.errors import InvalidArgument, ModelError, Unavailable
from serving_runtime.common.request import InferResponse, Outcome, Tensor
from serving_runtime.config.tensors import ModelTensor
from serving_runtime.engine.catalog import labels
from serving_runtime.engine.requests.classification import answering, check, highest

pytestmark = pytest.mark.feature("E4")


@pytest.mark.parametrize(
    ("values", "dtype", "count", "found"),
    [
        pytest.param([1, 5, 10, 4], "i4", 2, [b"10:2", b"5:1"], id="integers"),
        pytest.param([0.5, -1.25, 0.75], "f4", 2, [b"0.750000:2", b"0.500000:0"], id="floats"),
        pytest.param([3, 7, 7, 3], "u1", 4, [b"7:1", b"7:2", b"3:0", b"3:3"], id="equal ones by index"),
        pytest.param([1, 2], "f8", 5, [b"2.000000:1", b"1.000000:0"], id="more than there are"),
        pytest.param([-(2**63), 2**63 - 1], "i8", 1, [b"9223372036854775807:1"], id="the ends of INT64"),
        pytest.param([False, True], "?", 2, [b"1:1", b"0:0"], id="booleans"),
    ],
)
def test_the_highest_classes(values: list[float], dtype: str, count: int, found: list[bytes]) -> None:
    assert highest(np.array(values, dtype), count, (), batched=False).tolist() == found


def test_each_row_of_a_batch_has_its_own_and_labels_where_there_are_some() -> None:
    array = np.array([[[1, 3], [2, 0]], [[9, 8], [7, 6]]], "i2")
    found = highest(array, 2, ["zero", "one", ""], batched=True)
    assert found.shape == (2, 2)
    assert found.tolist() == [[b"3:1:one", b"2:2:"], [b"9:0:zero", b"8:1:one"]]


@pytest.mark.parametrize(("shape", "found"), [((0, 3), (0, 2)), ((2, 0), (2, 0))])
def test_what_is_empty_has_no_classes(shape: tuple[int, ...], found: tuple[int, ...]) -> None:
    assert highest(np.empty(shape, "f4"), 2, (), batched=True).shape == found


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=12), st.integers(1, 12))
def test_they_are_the_ones_that_sorting_finds(values: list[int], count: int) -> None:
    ordered = sorted(range(len(values)), key=lambda index: (-values[index], index))[:count]
    found = highest(np.array([values]), count, (), batched=True)
    assert found.tolist() == [[f"{values[index]}:{index}".encode() for index in ordered]]


def test_only_the_outputs_asked_for_are_answered_in_classes() -> None:
    answers: list[Outcome] = []
    on_done = answering({"a": 1, "h": 1}, {"a": ["cat", "dog"]}, answers.append, batched=True)
    scores = np.array([[0.25, 0.5]], "f4")
    bf16 = (scores.view("u4") >> 16).astype("u2")
    outputs = [Tensor(name, DATATYPES["FP32"], scores) for name in ("a", "b")]
    on_done(InferResponse("m", "1", (*outputs, Tensor("h", DATATYPES["BF16"], bf16))))
    refusal = Unavailable("no")
    on_done(refusal)
    response, error = answers
    assert error is refusal
    assert isinstance(response, InferResponse)
    assert [(output.name, output.datatype.name, output.array.tolist()) for output in response.outputs] == [
        ("a", "BYTES", [[b"0.500000:1:dog"]]),
        ("b", "FP32", [[0.25, 0.5]]),
        ("h", "BYTES", [[b"0.500000:1"]]),
    ]


@pytest.mark.parametrize(
    ("classes", "sentence"),
    [({"z": 1}, "unexpected inference output 'z'"), ({"s": 1}, "is BYTES"), ({"a": 0}, "must be >= 1")],
)
def test_what_has_no_classes_is_refused(classes: dict[str, int], sentence: str) -> None:
    outputs = [ModelTensor("a", DATATYPES["FP32"], (2,), None), ModelTensor("s", DATATYPES["BYTES"], (2,), None)]
    check({"a": 3}, outputs)
    with pytest.raises(InvalidArgument, match=sentence):
        check(classes, outputs)


def config(filename: str):
    message = proto.ModelConfig()
    message.output.add(name="a", label_filename=filename)
    message.output.add(name="b")
    return message


def test_labels_are_lines(tmp_path: Path) -> None:
    (tmp_path / "names.txt").write_bytes("cat\r\n\nBär\n".encode())
    assert labels.read(tmp_path, config("names.txt")) == {"a": ("cat", "", "Bär")}
    assert labels.read(tmp_path, config("")) == {}


@pytest.mark.parametrize("filename", ["../names.txt", "/etc/passwd", "nothing.txt", "link"])
def test_labels_from_elsewhere_are_not_read(tmp_path: Path, filename: str) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "names.txt").write_text("secret")
    (tmp_path / "m" / "link").symlink_to("../names.txt")
    with pytest.raises(ModelError, match=r"leaves the model's folder|cannot be read"):
        labels.read(tmp_path / "m", config(filename))
