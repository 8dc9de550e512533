"""The least slice that holds a model."""

import pytest

from placement.mig.geometry import GEOMETRIES
from placement.slices.required_slice import Misfit, Need, needed

_GIB = 1 << 30
_H100 = GEOMETRIES["H100-80GB"]


@pytest.mark.parametrize(
    ("gib", "compute_slices"),
    [
        pytest.param(2, 1, id="the smallest"),
        pytest.param(7, 1, id="what it has and a fifth more still fits"),
        pytest.param(8, 1, id="the next size of memory with as few compute slices"),
        pytest.param(20, 3, id="memory of a half"),
        pytest.param(50, 7, id="memory of all"),
    ],
)
def test_the_least_slice(gib: int, compute_slices: int) -> None:
    found = needed(gib * _GIB, _H100)
    assert isinstance(found, Need)
    assert found.compute_slices == compute_slices
    assert found.memory_bytes == int(gib * _GIB * 1.2)


def test_it_says_why() -> None:
    found = needed(7 * _GIB, _H100)
    assert isinstance(found, Need)
    assert found.why == "7 GiB measured and 20 % more make 8.4 GiB: 1g.10gb has 8.89 GiB"


def test_what_no_slice_can_hold_is_said() -> None:
    why = "70 GiB measured and 20 % more make 84 GiB, and a whole H100-80GB has 71.1 GiB"
    assert needed(70 * _GIB, _H100) == Misfit(why)
