"""Slices that fit on a GPU together."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement.mig.geometry import GEOMETRIES
from placement.mig.layouts import arranged, fits, full_layouts, layout_of, spread_over

_A100 = GEOMETRIES["A100-40GB"]


def test_an_a30_can_be_cut_in_four_ways() -> None:
    ways = ({"4g.24gb": 1}, {"2g.12gb": 2}, {"2g.12gb": 1, "1g.6gb": 2}, {"1g.6gb": 4})
    assert set(full_layouts("A30")) == {layout_of(each) for each in ways}


def test_the_ways_to_cut_an_a100_without_its_newer_profile() -> None:
    """The combinations of the guide's picture of the A100 that are full, by their sizes."""
    found = {layout for layout in full_layouts("A100-40GB") if "1g.10gb" not in dict(layout)}
    assert {"+".join(name[0] for name, count in sorted(one, reverse=True) for _ in range(count)) for one in found} == {
        "7", "4+3", "4+2+1", "4+1+1+1", "3+3", "3+2+2", "3+2+1+1", "3+1+1+1+1",
        "2+2+2+1", "2+2+1+1+1", "2+1+1+1+1+1", "1+1+1+1+1+1+1",
    }  # fmt: skip


@pytest.mark.parametrize("counts", [{"4g.20gb": 2}, {"3g.20gb": 3}, {"4g.20gb": 1, "3g.20gb": 1, "1g.5gb": 1}])
def test_what_does_not_fit(counts: dict[str, int]) -> None:
    assert not fits(_A100, counts)


@given(st.dictionaries(st.sampled_from(list(_A100.profiles)), st.integers(1, 7), max_size=4))
def test_slices_never_overlap_and_begin_where_they_may(counts: dict[str, int]) -> None:
    found = arranged(_A100, counts)
    if found is None:
        return
    taken = [
        place for each in found for place in range(each.start, each.start + _A100.profiles[each.profile].memory_slices)
    ]
    assert len(taken) == len(set(taken))
    assert max(taken, default=0) < _A100.memory_slices
    assert all(each.start in _A100.profiles[each.profile].starts for each in found)
    assert sum(_A100.profiles[each.profile].compute_slices for each in found) <= _A100.compute_slices
    assert Counter(each.profile for each in found) == Counter(counts)


@pytest.mark.parametrize("product", GEOMETRIES)
def test_to_a_full_layout_nothing_can_be_added(product: str) -> None:
    geometry = GEOMETRIES[product]
    for layout in full_layouts(product):
        assert fits(geometry, dict(layout))
        assert not any(fits(geometry, Counter(dict(layout)) + Counter([name])) for name in geometry.profiles)


def test_the_slices_of_a_node_are_spread_alike_where_that_is_possible() -> None:
    assert spread_over(_A100, 2, {"3g.20gb": 2, "1g.5gb": 8}) == (layout_of({"3g.20gb": 1, "1g.5gb": 4}),) * 2
    assert spread_over(_A100, 2, {"7g.40gb": 1, "1g.5gb": 7}) == (layout_of({"7g.40gb": 1}), layout_of({"1g.5gb": 7}))
    assert spread_over(_A100, 2, {}) == ((), ())
