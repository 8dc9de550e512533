"""Features and bins, and what hostile tensors may make of them."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.tensors import DTYPES, Tensor
from feedback.domain.drift.features import MOST_FEATURES, MOST_ROWS, Feature, Kind, Source, features_of
from feedback.domain.drift.sketch import MOST_CLASSES, bins_of, stored_bins


def fp(values: object, datatype: str = "FP32") -> Tensor:
    return Tensor(datatype, np.asarray(values, DTYPES[datatype]))


def texts(*values: bytes) -> Tensor:
    array = np.empty(len(values), object)
    array[:] = values
    return Tensor("BYTES", array.reshape(-1, 1))


def test_small_inputs_have_a_feature_for_each_column_and_large_ones_three() -> None:
    found = features_of({"row": fp([[1, 2], [3, 4]]), "image": fp(np.ones((2, 8, 8)))}, None)
    by_name = {feature.name: np.asarray(values).tolist() for feature, values in found.items()}
    assert by_name == {
        "row[0]": [1, 3],
        "row[1]": [2, 4],
        "mean of image": [1, 1],
        "deviation of image": [0, 0],
        "share of zeros of image": [0, 0],
    }


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        (fp([[0.1, 0.9], [0.8, 0.2]]), {"class of y": ["1", "0"], "score of y": [0.9, 0.8]}),
        (fp([[np.nan, 0.25]]), {"class of y": ["1"], "score of y": [0.25]}),
        (fp([1.5, 2.5]), {"value of y": [1.5, 2.5]}),
        (fp([3, 7], "INT64"), {"class of y": ["3", "7"]}),
        (texts(b"cat", b"dog"), {"class of y": ["cat", "dog"]}),
        (fp([]), {}),
    ],
)
def test_answers_are_top_classes_with_scores_or_values(output: Tensor, expected: dict[str, list[object]]) -> None:
    found = features_of({}, ("y", output))
    rounded = {
        feature.name: values if isinstance(values, list) else np.round(values, 5).tolist()
        for feature, values in found.items()
    }
    assert rounded == expected
    assert all(feature.source is Source.ANSWER for feature in found)


def test_short_texts_are_classes_and_long_ones_only_have_a_length() -> None:
    assert {each.name for each in features_of({"t": texts(b"yes")}, None)} == {"length of t", "text of t"}
    assert {each.name for each in features_of({"t": texts(b"y" * 41)}, None)} == {"length of t"}


def test_features_rows_and_names_are_bounded() -> None:
    inputs = {f"name\0\n{number}" * 40: fp(np.ones((1000, 32))) for number in range(5)}
    found = features_of(inputs, ("out" * 100, fp(np.ones((1000, 3)))))
    assert len(found) == MOST_FEATURES
    assert all(len(values) == MOST_ROWS for values in found.values())
    assert all(len(feature.name) <= 200 and feature.name.isprintable() for feature in found)


def test_an_input_does_not_take_the_name_of_an_answer() -> None:
    found = features_of({"value of y": fp([[1.0]])}, ("y", fp([2.0])))
    assert list(found) == [Feature("value of y", Source.ANSWER, Kind.NUMBER)]


def test_numbers_fall_between_deciles_and_outside() -> None:
    bins = bins_of(Kind.NUMBER, list(range(1, 101)))
    assert bins is not None
    counts = bins.counts(np.array([0, 1, 50, 100, 101, np.nan, np.inf, -np.inf]))
    assert (counts[0], counts[-2], counts[-1]) == (1, 1, 3)
    assert bins.size == 13
    assert bins.outliers(counts) == 5 / 8
    assert counts.sum() == 8


def test_one_value_is_a_range_of_its_own() -> None:
    bins = bins_of(Kind.NUMBER, [0.5] * 500)
    assert bins is not None
    assert bins.counts(np.array([0.4, 0.5, 0.6])).tolist() == [1, 1, 1, 0]
    assert [bins.words(number) for number in range(4)] == [
        "values below 0.5",
        "values of 0.5",
        "values above 0.5",
        "values that are no finite number",
    ]


def test_classes_are_the_frequent_ones_and_names_have_no_shape() -> None:
    bins = bins_of(Kind.CLASS, [str(number % 30) for number in range(500)])
    assert bins is not None
    assert (bins.size, len(bins.classes)) == (MOST_CLASSES + 1, MOST_CLASSES)
    assert bins.counts(["0", "29", "?"]).tolist() == [1, *[0] * 18, 2]
    assert bins_of(Kind.CLASS, [f"user-{number}" for number in range(500)]) is None
    assert bins_of(Kind.NUMBER, [float("nan")] * 500) is None


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(width=64), min_size=1, max_size=80), st.lists(st.floats(width=64), max_size=40))
def test_any_numbers_are_counted_once_in_bounded_json(first: list[float], values: list[float]) -> None:
    bins = bins_of(Kind.NUMBER, first)
    if bins is None:
        return
    assert bins.size <= 13
    assert bins.counts(np.array(values, float)).sum() == len(values)
    document = json.dumps(bins.json(), allow_nan=False)
    assert len(document) < 1000
    assert stored_bins(json.loads(document)) == bins
    events = bins.events(bins.counts(np.array(values, float)))
    assert all(bins.words(number) for number in range(len(events)))
