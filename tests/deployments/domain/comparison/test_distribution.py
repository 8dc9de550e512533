import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain.comparison.difference import MOST
from deployments.domain.comparison.distribution import Distribution

VALUES = st.lists(st.floats(0, 1e13) | st.just(MOST) | st.just(0.0), max_size=30)


@given(VALUES, VALUES)
def test_parts_add_up_to_the_whole_in_any_order(one, other):
    whole = Distribution().plus([*one, *other])
    assert Distribution().plus(one).merged(Distribution().plus(other)) == whole
    assert Distribution().plus(other).plus(one) == whole
    assert whole.total == len(one) + len(other)
    assert sum(count for _, count in whole.decades()) == whole.total - whole.zeros - whole.sizeless


@given(st.lists(st.floats(1e-11, 1e11), min_size=1, max_size=50), st.floats(0.01, 1))
def test_a_quantile_is_at_most_a_quarter_too_high(values, share):
    exact = sorted(values)[max(0, math.ceil(share * len(values)) - 1)]
    found = Distribution().plus(values).quantile(share)
    assert exact * (1 - 1e-9) <= found <= exact * 1.26


@pytest.mark.parametrize(
    ("values", "share", "quantile"),
    [([], 0.5, None), ([0, 0, 1], 0.5, 0), ([0, 0, 1], 0.99, 1), ([0, MOST], 0.99, None), ([5e-324], 1, 5e-324)],
)
def test_quantiles_of_zeros_and_of_what_has_no_size(values, share, quantile):
    assert Distribution().plus(values).quantile(share) == quantile


def test_decades_have_no_gaps():
    assert Distribution().plus([2e-3, 5e-3, 0.7, 0]).decades() == [(-3, 2), (-2, 0), (-1, 1)]


@given(VALUES)
def test_it_is_stored_and_read_back(values):
    whole = Distribution().plus(values)
    assert Distribution.stored(whole.as_json()) == whole
