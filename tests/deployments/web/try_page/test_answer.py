"""What a page shows of an answer."""

import numpy as np

from common.tensors import Tensor
from deployments.web.try_page import shown


def test_the_best_of_scores_come_first() -> None:
    (output,) = shown({"y": Tensor("FP32", np.array([[0.1, -2.0, 7.5, 0.3, 0.2, 0.0]], "<f4"))})
    ((*best,),) = output.best
    assert [score.index for score in best] == [2, 3, 4, 0, 5]
    assert [score.text for score in best] == ["7.5", "0.3", "0.2", "0.1", "0"]
    assert best[0].width_percent == 100


def test_shares_are_told_in_percent() -> None:
    (output,) = shown({"y": Tensor("FP32", np.array([0.25, 0.75], "<f4"))})
    assert [(score.index, score.text, score.width_percent) for score in output.best[0]] == [
        (1, "75.0\u00a0%", 75.0),
        (0, "25.0\u00a0%", 25.0),
    ]


def test_only_the_first_rows_of_many_are_shown() -> None:
    (output,) = shown({"y": Tensor("FP32", np.zeros((100, 3), "<f4"))})
    assert (len(output.best), output.rows) == (4, 100)


def test_other_values_are_text_with_the_middle_left_out() -> None:
    labels, words, large = shown(
        {
            "label": Tensor("INT64", np.array([7])),
            "words": Tensor("BYTES", np.array([b"ja", b"\xff<b>"], object)),
            "large": Tensor("FP32", np.ones((10, 100, 100), "<f4")),
        }
    )
    assert (labels.text, labels.best) == ("[7]", ())
    assert words.text == "['ja', '\ufffd<b>']"
    assert "..." in large.text
    assert len(large.text) < 2500


def test_numbers_that_json_has_not_are_shown_too() -> None:
    (output,) = shown({"y": Tensor("FP32", np.array([np.nan, 1.0, np.inf], "<f4"))})
    assert "nan" in output.text
