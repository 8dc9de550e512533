import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from deployments.domain.comparison.ranking import looks_like_scores, same_best


@pytest.mark.parametrize(
    ("stable", "shadow", "k", "same"),
    [
        pytest.param([1, 3, 2], [1, 9, 2], 1, True, id="the same class is the best"),
        pytest.param([1, 3, 2], [1, 2, 3], 1, False, id="another class is the best"),
        pytest.param([1, 3, 2], [1, 2, 3], 2, True, id="the two best are the same in another order"),
        pytest.param([1, 3, 2], [2, 3, 1], 2, False, id="the second best is another"),
        pytest.param([2, 2, 1], [1, 2, 1], 1, True, id="of equal scores either may be the best"),
        pytest.param([2, 2, 1], [1, 1, 2], 1, False, id="neither of the equal scores is the other side's best"),
        pytest.param([1, 3], [3, 1], 5, True, id="all classes are among the best of so many"),
        pytest.param([np.nan, 3, 2], [np.nan, 3, 2], 1, True, id="NaN is the worst"),
        pytest.param([np.nan, 3, 2], [9, 3, 2], 1, False, id="NaN is the worst on either side"),
    ],
)
def test_the_best_classes(stable, shadow, k, same):
    assert same_best(np.array([stable], float), np.array([shadow], float), k).tolist() == [same]


def test_each_leading_position_has_a_ranking_of_its_own():
    stable = np.array([[[1, 2], [2, 1]], [[1, 2], [1, 2]]], float)
    assert same_best(stable, stable[::-1], 1).tolist() == [True, False, True, False]


@given(
    arrays.arrays(float, (4, 5), elements=st.integers(0, 3)),
    arrays.arrays(float, (4, 5), elements=st.integers(0, 3)),
    st.integers(1, 5),
    st.permutations(range(5)),
)
def test_names_of_classes_do_not_matter(stable, shadow, k, order):
    renamed = same_best(stable[:, order], shadow[:, order], k)
    assert renamed.tolist() == same_best(stable, shadow, k).tolist() == same_best(shadow, stable, k).tolist()


def test_scores_are_several_floats_along_the_last_axis():
    assert looks_like_scores(np.zeros((1, 10)))
    assert not looks_like_scores(np.zeros((10, 1)))
    assert not looks_like_scores(np.zeros((1, 10), int))
    assert not looks_like_scores(np.array(1.0))
