import numpy as np
import pytest

from common.tensors import DTYPES, Tensor
from feedback.domain.top_classes import MOST_ROWS, parameters_of, top_of

NAN, INF = float("nan"), float("inf")


def tensor(values: object, datatype: str = "FP32") -> Tensor:
    return Tensor(datatype, np.array(values, DTYPES[datatype]))


@pytest.mark.parametrize(
    ("output", "top"),
    [
        pytest.param(tensor([[0.1, 0.7, 0.2], [0.5, 0.25, 0.25]]), [[1, 0.7], [0, 0.5]], id="classes"),
        pytest.param(tensor([[0.1, 0.7]], "FP16"), [[1, 0.7]], id="half precision"),
        pytest.param(tensor([[1, 5, 3]], "INT32"), [[1, 5.0]], id="whole numbers"),
        pytest.param(tensor([[[1, 2], [4, 3]], [[6, 5], [7, 8]]]), [[1, 2.0], [0, 4.0], [0, 6.0], [1, 8.0]], id="axes"),
        pytest.param(tensor([1.5, -2.25]), [[0, 1.5], [0, -2.25]], id="regression"),
        pytest.param(tensor([[1.5], [0.1]]), [[0, 1.5], [0, 0.1]], id="regression as a column"),
        pytest.param(tensor(0.5), [[0, 0.5]], id="a single number"),
        pytest.param(tensor([7, 0], "INT64"), [[7, 7], [0, 0]], id="labels"),
        pytest.param(tensor([2**64 - 1], "UINT64"), [[2**64 - 1, 2**64 - 1]], id="large label"),
        pytest.param(tensor([True, False], "BOOL"), [[1, 1], [0, 0]], id="yes or no"),
        pytest.param(tensor([[False, True]], "BOOL"), [[1, 1.0]], id="one-hot"),
        pytest.param(tensor([b"cat", b"\xff\x00dog"], "BYTES"), [["cat", 1.0], ["\ufffd\ufffddog", 1.0]], id="texts"),
        pytest.param(tensor([[b"0.9:1", b"0.1:0"]], "BYTES"), [["0.9:1", 1.0]], id="texts by rank"),
        pytest.param(tensor([[NAN, 0.5, 0.25]]), [[1, 0.5]], id="NaN beside numbers"),
        pytest.param(tensor([[NAN, NAN]]), [[0, None]], id="only NaN"),
        pytest.param(tensor([NAN, INF]), [[0, None], [0, None]], id="not finite"),
        pytest.param(tensor([[0.0, INF]]), [[1, None]], id="infinite"),
        pytest.param(tensor(np.zeros((3, 0))), [], id="no columns"),
        pytest.param(tensor([]), [], id="nothing"),
    ],
)
def test_top_class_and_score_of_each_row(output: Tensor, top: list[object]) -> None:
    assert top_of(output) == top


def test_the_first_rows_are_kept() -> None:
    assert top_of(tensor(np.arange(1000))) == [[0, float(each)] for each in range(MOST_ROWS)]


def test_long_texts_are_cut() -> None:
    assert top_of(tensor([b"x" * 1000], "BYTES")) == [["x" * 200, 1.0]]


def test_parameters_are_kept_as_text() -> None:
    said = {
        "a": "é\0\ud800",
        "b": 7,
        "c": 0.5,
        "d": True,
        "e": [1],
        "f": {"g": 1},
        "h": 10**400,
        "i": "x" * 100,
        "j": 1,
    }
    assert parameters_of({"parameters": said}, [*"abcdefghi", "not there"]) == {
        "a": "é\ufffd?",
        "b": "7",
        "c": "0.5",
        "d": "true",
        "i": "x" * 64,
    }
    for request in ({}, {"parameters": None}, {"parameters": [1]}):
        assert parameters_of(request, ["a"]) == {}
