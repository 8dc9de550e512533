import math
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.errors import InvalidInput
from feedback.domain.scorers import KINDS, KeptAnswer, check_options, loss, same_class, unit_of

COSTS = [[0, 1, 4], [2, 0, 8], [1, 1, 0]]
NUMBERS = st.floats(-1e6, 1e6)
BOUNDS = st.floats(1e-3, 1e6)


def classes(*found: int | str) -> KeptAnswer:
    return KeptAnswer([[each, 0.9] for each in found])


def regression(*found: float) -> KeptAnswer:
    return KeptAnswer([[0, each] for each in found])


def probabilities(*rows: list[float]) -> KeptAnswer:
    return KeptAnswer([[row.index(max(row)), max(row)] for row in rows], rows)


@st.composite
def distributions(draw: Callable[..., Any], least: int = 2) -> list[float]:
    weights = draw(st.lists(st.floats(0.01, 1), min_size=least, max_size=8))
    return [weight / math.fsum(weights) for weight in weights]


@pytest.mark.parametrize(
    ("kind", "options", "answer", "label", "expected"),
    [
        pytest.param("accuracy", {}, classes(3), 3, 0, id="right class"),
        pytest.param("accuracy", {}, classes(3), "3", 0, id="right class as text"),
        pytest.param("accuracy", {}, classes(3), 4, 1, id="wrong class"),
        pytest.param("accuracy", {}, classes("cat"), "cat", 0, id="right text"),
        pytest.param("accuracy", {}, classes("cat"), "Cat", 1, id="texts differ by case"),
        pytest.param("accuracy", {}, classes(1, 2, 3, 4), [1, 2, 0, 0], 0.5, id="mean over rows"),
        pytest.param("topK", {"k": 2}, probabilities([0.5, 0.3, 0.2]), 1, 0, id="second of two"),
        pytest.param("topK", {"k": 2}, probabilities([0.5, 0.3, 0.2]), 2, 1, id="third of two"),
        pytest.param(
            "topK", {"k": 1}, KeptAnswer([[0, 1.0]], [[1.0, 1.0]]), 1, 1, id="of equal scores the first is top"
        ),
        pytest.param("logLoss", {"bound": 10}, probabilities([0.0, 1.0]), 1, 0, id="certain and right"),
        pytest.param("logLoss", {"bound": 10}, probabilities([0.0, 1.0]), 0, 1, id="certain and wrong"),
        pytest.param("logLoss", {"bound": 2}, probabilities([0.5, 0.5]), 0, math.log(2) / 2, id="half"),
        pytest.param("logLoss", {"bound": 2}, KeptAnswer([[0, 0.25]], [[0.25]]), 1, math.log(4) / 2, id="of class 1"),
        pytest.param("brier", {}, probabilities([0.0, 1.0]), 1, 0, id="Brier: certain and right"),
        pytest.param("brier", {}, probabilities([0.0, 1.0]), 0, 1, id="Brier: certain and wrong"),
        pytest.param("brier", {}, probabilities([0.5, 0.5]), 0, 0.25, id="Brier: half"),
        pytest.param("absoluteError", {"bound": 10}, regression(5), 7.5, 0.25, id="a quarter of the bound"),
        pytest.param("absoluteError", {"bound": 10}, regression(5), 500, 1, id="beyond the bound"),
        pytest.param("absoluteError", {"bound": 10}, KeptAnswer([[7, 7]]), 2, 0.5, id="a whole number"),
        pytest.param("squaredError", {"bound": 10}, regression(5), 10, 0.25, id="squared"),
        pytest.param("costMatrix", {"costs": COSTS}, classes(2), 1, 1, id="the largest cost"),
        pytest.param("costMatrix", {"costs": COSTS}, classes(0), "1", 0.25, id="a quarter of it"),
        pytest.param("costMatrix", {"costs": COSTS}, classes(2), 2, 0, id="no cost"),
        pytest.param("reward", {"low": -1, "high": 3}, classes(1), 3, 0, id="the highest reward"),
        pytest.param("reward", {"low": -1, "high": 3}, classes(1), -1, 1, id="the lowest"),
        pytest.param("reward", {"low": -1, "high": 3}, classes(1, 1), 2, 0.25, id="one of the whole request"),
        pytest.param("reward", {"low": 0, "high": 1}, classes(1, 1), [0, 1], 0.5, id="one for each row"),
        pytest.param("reward", {"low": 0, "high": 1}, classes(1), 99, 0, id="more than the highest"),
    ],
)
def test_loss(kind: str, options: dict[str, Any], answer: KeptAnswer, label: object, expected: float) -> None:
    check_options(kind, options)
    assert loss(kind, options, answer, label) == pytest.approx(expected)


@given(distributions(), st.data())
def test_losses_of_probabilities_fall_as_the_right_class_gets_more(row: list[float], data: st.DataObject) -> None:
    right = data.draw(st.integers(0, len(row) - 1))
    moved = [value / 2 for value in row]
    moved[right] += 0.5
    for kind, options in (("logLoss", {"bound": 5.0}), ("brier", {}), ("topK", {"k": 1})):
        before = loss(kind, options, probabilities(row), right)
        after = loss(kind, options, probabilities(moved), right)
        assert 0 <= after <= before + 1e-12 <= 1 + 1e-9


@given(NUMBERS, NUMBERS, NUMBERS, BOUNDS)
def test_errors_grow_with_the_distance(answer: float, near: float, far: float, bound: float) -> None:
    if abs(answer - near) > abs(answer - far):
        near, far = far, near
    for kind in ("absoluteError", "squaredError"):
        losses = [loss(kind, {"bound": bound}, regression(answer), label) for label in (answer, near, far)]
        assert losses[0] == 0
        assert 0 <= losses[1] <= losses[2] <= 1


@given(st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=64), BOUNDS)
def test_the_loss_of_a_request_is_the_mean_of_its_rows(rows: list[tuple[float, float]], bound: float) -> None:
    options = {"bound": bound}
    whole = loss("absoluteError", options, regression(*(row[0] for row in rows)), [row[1] for row in rows])
    single = [loss("absoluteError", options, regression(answer), label) for answer, label in rows]
    assert whole == pytest.approx(math.fsum(single) / len(single))


@given(NUMBERS, NUMBERS, BOUNDS)
def test_a_loss_times_the_scale_is_what_people_read(answer: float, label: float, bound: float) -> None:
    for kind, power in (("absoluteError", 1), ("squaredError", 2)):
        options = {"bound": bound}
        read = loss(kind, options, regression(answer), label) * unit_of(kind, options).scale
        assert read == pytest.approx(min(abs(answer - label), bound) ** power, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize(
    ("kind", "options", "name", "scale"),
    [
        ("accuracy", {}, "percent wrong", 100),
        ("topK", {"k": 3}, "percent wrong", 100),
        ("logLoss", {"bound": 7}, "nats", 7),
        ("brier", {}, "Brier score", 2),
        ("absoluteError", {"bound": 7}, "absolute error", 7),
        ("squaredError", {"bound": 7}, "squared error", 49),
        ("costMatrix", {"costs": COSTS}, "cost", 8),
        ("reward", {"low": -1, "high": 3}, "reward lost", 4),
    ],
)
def test_units(kind: str, options: dict[str, Any], name: str, scale: float) -> None:
    assert (unit_of(kind, options).name, unit_of(kind, options).scale) == (name, scale)


@pytest.mark.parametrize(
    ("kind", "options", "answer", "label", "sentence"),
    [
        pytest.param("absoluteError", {"bound": 1}, regression(1), "cat", "compares numbers", id="text for a number"),
        pytest.param("absoluteError", {"bound": 1}, classes(4), 1, "the answer is the class '4'", id="no regression"),
        pytest.param("absoluteError", {"bound": 1}, KeptAnswer([[0, None]]), 1, "no finite number", id="NaN answered"),
        pytest.param("costMatrix", {"costs": COSTS}, classes(1), 3, "class 3, and there are 3 classes", id="beyond"),
        pytest.param("costMatrix", {"costs": COSTS}, classes(7), 1, "the answer is class 7", id="answer beyond"),
        pytest.param("costMatrix", {"costs": COSTS}, classes(1), "cat", "index of a class", id="a text"),
        pytest.param("costMatrix", {"costs": COSTS}, classes(1), -1, "index of a class", id="negative"),
        pytest.param("topK", {"k": 1}, probabilities([0.5, 0.5]), 2, "0 to 1", id="beyond the output"),
        pytest.param("topK", {"k": 1}, classes(1), 1, "are not kept", id="values are not kept"),
        pytest.param("logLoss", {"bound": 1}, KeptAnswer([[0, 3]], [[3.0, -1.0]]), 1, "no probabilities", id="logits"),
        pytest.param("brier", {}, KeptAnswer([[0, 0.9]], [[0.9, 0.9]]), 1, "add up to 1.8", id="no distribution"),
        pytest.param("brier", {}, KeptAnswer([[0, 0]], [[math.nan, 1.0]]), 1, "no finite numbers", id="NaN in output"),
        pytest.param("accuracy", {}, classes(1, 2), 1, "for 1 row, and the answer has 2 rows", id="too few rows"),
        pytest.param("accuracy", {}, classes(1), [1, 1], "for 2 rows, and the answer has 1 row", id="too many rows"),
        pytest.param("accuracy", {}, KeptAnswer([]), [], "no row is kept", id="no rows"),
        pytest.param("accuracy", {}, classes(1), math.nan, "the label is nan", id="NaN"),
        pytest.param("reward", {"low": 0, "high": 1}, classes(1), math.inf, "the label is inf", id="infinity"),
        pytest.param("reward", {"low": 0, "high": 1}, classes(1), "good", "compares numbers", id="reward in words"),
    ],
)
def test_what_does_not_fit_is_a_sentence(
    kind: str, options: dict[str, Any], answer: KeptAnswer, label: object, sentence: str
) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        loss(kind, options, answer, label)


@pytest.mark.parametrize(
    ("kind", "options", "field"),
    [
        ("precision", {}, "kind"),
        ("accuracy", {"k": 1}, "options"),
        ("accuracy", {"output": "p"}, "options"),
        ("topK", {}, "options.k"),
        ("topK", {"k": 0}, "options.k"),
        ("topK", {"k": True}, "options.k"),
        ("topK", {"k": 1, "output": ""}, "options.output"),
        ("topK", {"k": 1.5}, "options.k"),
        ("logLoss", {"bound": 0}, "options.bound"),
        ("logLoss", {"bound": 1e9}, "options.bound"),
        ("absoluteError", {"bound": math.nan}, "options.bound"),
        ("absoluteError", {"bound": math.inf}, "options.bound"),
        ("squaredError", {"bound": "7"}, "options.bound"),
        ("costMatrix", {"costs": []}, "options.costs"),
        ("costMatrix", {"costs": [[0, 1], [1]]}, "options.costs"),
        ("costMatrix", {"costs": [[0, 0], [0, 0]]}, "options.costs"),
        ("costMatrix", {"costs": [[0, -1], [1, 0]]}, "options.costs"),
        ("costMatrix", {"costs": [[0] * 101] * 101}, "options.costs"),
        ("reward", {"low": 0}, "options.high"),
        ("reward", {"low": 1, "high": 1}, "options.high"),
        ("reward", {"low": -math.inf, "high": 1}, "options.low"),
    ],
)
def test_options_are_refused_by_their_field(kind: str, options: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_options(kind, options)
    assert refused.value.field == field


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)


@given(st.sampled_from(list(KINDS)), st.dictionaries(st.sampled_from(["k", "bound", "costs", "low", "high"]), JSON))
def test_any_options_are_taken_or_refused(kind: str, options: dict[str, Any]) -> None:
    try:
        check_options(kind, options)
    except InvalidInput:
        return
    assert 0 < unit_of(kind, options).scale < math.inf


@given(st.integers(-(2**53), 2**53))
def test_a_class_is_the_same_as_number_and_as_text(number: int) -> None:
    assert same_class(number, str(number))
    assert same_class(str(number), number)
    assert not same_class(number, number + 1)
