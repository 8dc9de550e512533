import numpy as np
import pytest

from common.tensors import DTYPES, Tensor
from deployments.domain.comparison.answers import Answer, Outcome, compare
from deployments.domain.comparison.comparison_policy import Terms, Tolerance

ANY = Terms()


def tensor(values, datatype="FP32"):
    return Tensor(datatype, np.array(values, DTYPES[datatype]))


def answer(**outputs):
    return Answer(
        {name: tensor(*value) if isinstance(value, tuple) else tensor(value) for name, value in outputs.items()}
    )


FAILED = Answer({}, error="the model broke")
REFUSED = Answer({}, error="unexpected shape", blames_request=True)
GOOD = answer(y=[[1.0, 2.0]])
X = {"x": tensor([[0.0]])}


@pytest.mark.parametrize(
    ("stable", "shadow", "outcome", "message"),
    [
        pytest.param(GOOD, GOOD, Outcome.AGREES, "", id="the same answer"),
        pytest.param(GOOD, answer(y=[[1.0, 3.0]]), Outcome.DIFFERS, "y: values differ by up to 1", id="another value"),
        pytest.param(
            GOOD,
            answer(y=[[2.0, 1.0]]),
            Outcome.DIFFERS,
            "y: values differ by up to 1, and another class is the best",
            id="another best class",
        ),
        pytest.param(
            GOOD, answer(), Outcome.DIFFERS, "y: the new version's answer has no such output", id="an output is missing"
        ),
        pytest.param(
            GOOD,
            answer(y=[[1.0, 2.0]], z=[1.0]),
            Outcome.AGREES,
            "z: stable's answer has no such output",
            id="an output more, which no client reads yet",
        ),
        pytest.param(
            GOOD, answer(y=[1.0, 2.0]), Outcome.DIFFERS, "y: the shape is [2], stable's is [1, 2]", id="another shape"
        ),
        pytest.param(
            GOOD,
            answer(y=([[1.0, 2.0]], "FP64")),
            Outcome.DIFFERS,
            "y: the datatype is FP64, stable's is FP32",
            id="another datatype",
        ),
        pytest.param(
            GOOD, FAILED, Outcome.SHADOW_FAILED, "the new version failed: the model broke", id="the shadow alone fails"
        ),
        pytest.param(FAILED, GOOD, Outcome.STABLE_FAILED, "stable failed: the model broke", id="stable alone fails"),
        pytest.param(
            REFUSED,
            GOOD,
            Outcome.STABLE_REFUSED,
            "stable refused the request, which the new version answered: unexpected shape",
            id="the shadow takes what stable refuses",
        ),
        pytest.param(FAILED, REFUSED, Outcome.BOTH_FAILED, "both failed: the model broke", id="both fail"),
    ],
)
def test_two_answers(stable, shadow, outcome, message):
    found = compare(X, stable, shadow, ANY)
    assert (found.outcome, found.message) == (outcome, message)
    assert found.agreement == (1 if outcome is Outcome.AGREES else 0)


def test_pairs_without_anything_to_compare_count_for_nothing():
    uncounted = {outcome for outcome in Outcome if not outcome.is_compared}
    assert uncounted == {Outcome.STABLE_FAILED, Outcome.BOTH_FAILED, Outcome.NOTHING_ASKED}


def test_answers_without_an_output_in_common_are_not_compared():
    assert compare(X, answer(), answer(z=[1.0]), ANY).outcome is Outcome.NOTHING_ASKED


def test_answers_of_which_no_output_is_compared_do_not_agree_by_that():
    assert compare(X, GOOD, GOOD, Terms(tolerances={"y": None})).outcome is Outcome.NOTHING_ASKED


def test_the_rows_of_a_batch_agree_each_by_itself_over_all_outputs():
    inputs = {"x": tensor([[0.0]] * 4)}
    stable = answer(y=[[1.0], [2.0], [3.0], [4.0]], label=([1, 2, 3, 4], "INT64"))
    shadow = answer(y=[[9.0], [2.0], [3.0], [4.0]], label=([1, 0, 3, 4], "INT64"))
    found = compare(inputs, stable, shadow, ANY)
    assert (found.rows, found.agreeing_rows, found.agreement) == (4, 2, 0.5)


def test_a_vector_that_no_input_shares_its_length_with_is_one_row():
    found = compare(X, answer(y=[1.0, 2.0, 3.0]), answer(y=[1.0, 2.0, 9.0]), ANY)
    assert (found.rows, found.agreeing_rows) == (1, 0)


def test_an_empty_batch_agrees():
    empty = {"x": Tensor("FP32", np.zeros((0, 3), np.float32))}
    nothing = Answer({"y": Tensor("FP32", np.zeros((0, 2), np.float32))})
    assert compare(empty, nothing, nothing, ANY).outcome is Outcome.AGREES


def test_top_k_is_asked_of_outputs_that_may_be_scores_besides_their_tolerance():
    asked = Terms(top_k=1)
    close = answer(y=[[1.0, 1.0001]], label=([7], "INT64"))
    flipped = answer(y=[[1.0001, 1.0]], label=([7], "INT64"))
    assert compare(X, close, flipped, ANY).outcome is Outcome.AGREES
    assert compare(X, close, flipped, asked).outcome is Outcome.DIFFERS


def test_an_output_with_its_own_tolerance_is_asked_nothing_else():
    own = Terms(top_k=1, tolerances={"y": Tolerance(abs=1)})
    assert compare(X, answer(y=[[1.0, 1.1]]), answer(y=[[1.1, 1.0]]), own).outcome is Outcome.AGREES
    ranking = Terms(tolerances={"y": Tolerance(top_k=1)})
    assert compare(X, answer(y=[[1.0, 5.0]]), answer(y=[[3.0, 9.0]]), ranking).outcome is Outcome.AGREES


def test_an_output_without_a_tolerance_may_be_anything():
    loose = Terms(tolerances={"at": None})
    assert compare(X, answer(y=[1.0], at=[1.0]), answer(y=[1.0], at=[2.0, 3.0]), loose).outcome is Outcome.AGREES
    assert compare(X, answer(y=[1.0], at=[1.0]), answer(y=[1.0]), loose).outcome is Outcome.AGREES
