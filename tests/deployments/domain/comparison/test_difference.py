import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from common.tensors import DTYPES, Tensor
from deployments.domain.comparison.comparison_policy import EXACT, HALF_OF_THE_DIGITS, Tolerance
from deployments.domain.comparison.difference import MOST, Kind, compare_tensors

NAN, INF = math.nan, math.inf
FP32 = HALF_OF_THE_DIGITS["FP32"]


def tensor(values, datatype="FP32"):
    return Tensor(datatype, np.array(values, DTYPES[datatype]))


def difference(stable, shadow, tolerance=FP32, rows=1):
    return compare_tensors("y", stable, shadow, tolerance, rows)


@pytest.mark.parametrize(
    ("stable", "shadow", "datatype", "kind"),
    [
        pytest.param([1, 2], [1, 2], "FP32", Kind.EQUAL, id="the same values are equal"),
        pytest.param([0.0], [-0.0], "FP32", Kind.EQUAL, id="zero has no sign"),
        pytest.param([1, 2], [1.0003, 2], "FP32", Kind.WITHIN, id="half of the digits are the same"),
        pytest.param([1, 2], [1.001, 2], "FP32", Kind.BEYOND, id="less than half of the digits are the same"),
        pytest.param([1000], [1000.3], "FP32", Kind.WITHIN, id="large values may differ relatively"),
        pytest.param([0.0], [1e-4], "FP32", Kind.WITHIN, id="near zero values may differ absolutely"),
        pytest.param([1, 2], [1.01, 2], "FP16", Kind.WITHIN, id="FP16 has fewer digits to differ in"),
        pytest.param([1, 2], [1.05, 2], "FP16", Kind.BEYOND, id="FP16 has its limit too"),
        pytest.param([1, 2], [1.05, 2], "BF16", Kind.WITHIN, id="BF16 has still fewer"),
        pytest.param([1, 2], [1 + 1e-7, 2], "FP64", Kind.BEYOND, id="FP64 has more"),
        pytest.param([NAN, 1], [NAN, 1], "FP32", Kind.EQUAL, id="NaN at the same place is the same"),
        pytest.param([NAN, 1], [1, 1], "FP32", Kind.NOT_FINITE, id="NaN on one side is beyond any tolerance"),
        pytest.param([1, NAN], [NAN, 1], "FP32", Kind.NOT_FINITE, id="NaN at other places is beyond any tolerance"),
        pytest.param([INF], [INF], "FP32", Kind.EQUAL, id="the same infinity is the same"),
        pytest.param([INF], [-INF], "FP32", Kind.NOT_FINITE, id="the other infinity is not"),
        pytest.param([INF], [3e38], "FP32", Kind.NOT_FINITE, id="infinity is no large number"),
        pytest.param([1.7e308], [-1.7e308], "FP64", Kind.BEYOND, id="a difference that no float holds is beyond"),
        pytest.param([7], [7], "INT64", Kind.EQUAL, id="equal integers"),
        pytest.param([7], [8], "INT64", Kind.BEYOND, id="integers have no tolerance of their own"),
        pytest.param([-(2**63)], [2**63 - 1], "INT64", Kind.BEYOND, id="integers as far apart as can be"),
        pytest.param([2**63], [2**63 + 1], "UINT64", Kind.BEYOND, id="large integers next to each other are not equal"),
        pytest.param([True], [False], "BOOL", Kind.BEYOND, id="a flag that changed"),
        pytest.param([b"cat"], [b"cat"], "BYTES", Kind.EQUAL, id="equal texts"),
        pytest.param([b"cat"], [b"dog"], "BYTES", Kind.BEYOND, id="other texts"),
        pytest.param([], [], "FP32", Kind.EQUAL, id="nothing equals nothing"),
    ],
)
def test_two_outputs_of_one_datatype(stable, shadow, datatype, kind):
    tolerance = HALF_OF_THE_DIGITS.get(datatype, EXACT)
    found = difference(tensor(stable, datatype), tensor(shadow, datatype), tolerance)
    assert found.kind is kind
    assert found.agrees.tolist() == [kind in (Kind.EQUAL, Kind.WITHIN)]
    assert bool(found.message) == (not found.agrees.all())
    assert (found.excess > 1) == (kind not in (Kind.EQUAL, Kind.WITHIN)) or found.excess == 1


def test_a_changed_shape_and_a_changed_datatype_are_told_and_not_measured():
    shape = difference(tensor([1, 2]), tensor([[1, 2]]))
    assert (shape.kind, shape.message) == (Kind.SHAPE, "the shape is [1, 2], stable's is [2]")
    datatype = difference(tensor([1], "FP32"), tensor([1], "FP16"))
    assert (datatype.kind, datatype.message) == (Kind.DATATYPE, "the datatype is FP16, stable's is FP32")
    assert not shape.max_abs.size
    assert datatype.excess == MOST


def test_the_largest_absolute_and_relative_differences_and_the_angle_are_per_row():
    found = difference(tensor([[3, 4], [1, 0]]), tensor([[3, 5], [0, 1]]), rows=2)
    assert found.max_abs.tolist() == [1, 1]
    assert found.max_rel.tolist() == pytest.approx([0.2, 1])
    assert found.angle.tolist() == pytest.approx([1 - 29 / (5 * math.sqrt(34)), 1])


def test_integers_as_far_apart_as_can_be_are_measured():
    found = difference(tensor([-(2**63)], "INT64"), tensor([2**63 - 1], "INT64"), EXACT)
    assert found.max_abs.tolist() == [2.0**64]


def test_a_policy_gives_integers_a_tolerance():
    assert difference(tensor([7], "INT8"), tensor([8], "INT8"), Tolerance(abs=1)).kind is Kind.WITHIN


def test_a_tolerance_of_the_ranking_alone_does_not_judge_values():
    asked = Tolerance(top_k=1)
    assert difference(tensor([[1, 5, 2]]), tensor([[0, 9, 4]]), asked).agrees.all()
    flipped = difference(tensor([[1, 5, 2]]), tensor([[0, 4, 9]]), asked)
    assert not flipped.agrees.any()
    assert (flipped.rankings, flipped.flips, flipped.flips_k) == (1, 1, 1)


def test_a_cosine_judges_the_direction_and_not_the_length():
    asked = Tolerance(cosine=0.99)
    assert difference(tensor([1, 2]), tensor([10, 20]), asked).agrees.all()
    assert not difference(tensor([1, 2]), tensor([2, 1]), asked).agrees.any()
    assert not difference(tensor([0, 0]), tensor([2, 1]), asked).agrees.any()


def test_each_row_agrees_by_itself():
    found = difference(tensor([[1, 2], [3, 4], [5, 6]]), tensor([[1, 2], [3, 9], [5, 6]]), rows=3)
    assert found.agrees.tolist() == [True, False, True]
    assert (found.rankings, found.flips) == (3, 0)


FLOATS = arrays.arrays(
    st.sampled_from([np.float32, np.float64]),
    st.just((3, 4)),
    elements=st.floats(width=32) | st.sampled_from([0.0, -0.0, NAN, INF, -INF]),
)
WHOLE = arrays.arrays(st.sampled_from([np.int64, np.uint64, np.int8]), (3, 4))
TOLERANCES = st.sampled_from([FP32, EXACT, Tolerance(cosine=0.9), Tolerance(top_k=2), Tolerance(rel=0.1, top_k=1)])
NAMES = {np.dtype(name): datatype for datatype, name in DTYPES.items() if datatype != "BF16"}


@st.composite
def pairs(draw):
    one = draw(FLOATS | WHOLE)
    other = draw(arrays.arrays(one.dtype, one.shape) | st.just(one.copy()))
    datatype = NAMES[one.dtype]
    return Tensor(datatype, one), Tensor(datatype, other)


def figures(found):
    rows = [each.tolist() for each in (found.agrees, found.max_abs, found.max_rel, found.angle)]
    return found.kind, rows, found.excess, found.rankings, found.flips, found.flips_k, found.message


FAIR = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@FAIR
@given(pairs(), TOLERANCES)
def test_it_does_not_matter_which_side_is_called_stable(pair, tolerance):
    one, other = pair
    assert figures(difference(one, other, tolerance, 3)) == figures(difference(other, one, tolerance, 3))


@FAIR
@given(FLOATS | WHOLE, TOLERANCES)
def test_what_is_compared_with_itself_is_equal(values, tolerance):
    same = Tensor(NAMES[values.dtype], values)
    found = difference(same, Tensor(same.datatype, values.copy()), tolerance, 3)
    assert found.kind is Kind.EQUAL
    assert found.agrees.all()
    assert (found.excess, found.flips, found.angle.tolist(), found.max_abs.tolist()) == (0, 0, [0] * 3, [0] * 3)


@FAIR
@given(pairs(), TOLERANCES, st.permutations(range(3)))
def test_the_order_of_the_rows_does_not_matter(pair, tolerance, order):
    whole = difference(*pair, tolerance, 3)
    turned = difference(*(Tensor(each.datatype, each.values[list(order)]) for each in pair), tolerance, 3)
    assert turned.agrees.tolist() == whole.agrees[list(order)].tolist()
    assert turned.max_abs.tolist() == whole.max_abs[list(order)].tolist()
    assert (turned.kind, turned.flips, turned.excess) == (whole.kind, whole.flips, pytest.approx(whole.excess))


@FAIR
@given(pairs(), TOLERANCES)
def test_every_figure_is_finite_so_that_any_database_can_hold_it(pair, tolerance):
    found = difference(*pair, tolerance, 3)
    for each in (found.max_abs, found.max_rel, found.angle, np.array([found.excess])):
        assert np.isfinite(each).all()
        assert (each >= 0).all()
