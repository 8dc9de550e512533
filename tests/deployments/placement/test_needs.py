"""The least slice that holds a model and answers in time."""

import pytest

from deployments.placement.geometry import GEOMETRIES
from deployments.placement.needs import Measured, Misfit, Need, needed

_GIB = 1 << 30
_H100 = GEOMETRIES["H100-80GB"]


@pytest.mark.parametrize(
    ("gib", "latency_ms", "limit_ms", "compute_slices"),
    [
        pytest.param(2, {}, None, 1, id="memory alone: the smallest"),
        pytest.param(7, {}, None, 1, id="what it has and a fifth more still fits"),
        pytest.param(8, {}, None, 1, id="the next size of memory with as few compute slices"),
        pytest.param(20, {}, None, 3, id="memory of a half"),
        pytest.param(50, {}, None, 7, id="memory of all"),
        pytest.param(2, {7: 2.0}, 14.0, 1, id="seven times as long at the most: in time"),
        pytest.param(2, {7: 2.0}, 13.0, 2, id="a little too long on one compute slice"),
        pytest.param(2, {7: 2.0}, 4.0, 4, id="half of the compute slices"),
        pytest.param(2, {1: 6.0, 7: 2.0}, 7.0, 1, id="what was measured counts more than the bound"),
        pytest.param(2, {1: 6.0}, 6.0, 1, id="measured exactly"),
    ],
)
def test_the_least_slice(gib: int, latency_ms: dict[int, float], limit_ms: float | None, compute_slices: int) -> None:
    found = needed(Measured(gib * _GIB, latency_ms), _H100, latency_limit_ms=limit_ms)
    assert isinstance(found, Need)
    assert found.compute_slices == compute_slices
    assert found.memory_bytes == int(gib * _GIB * 1.2)


def test_it_says_why() -> None:
    found = needed(Measured(7 * _GIB, {7: 2.0}), _H100, latency_limit_ms=20)
    assert isinstance(found, Need)
    assert found.why == "7 GiB measured and 20 % more make 8.4 GiB: 1g.10gb has 8.89 GiB and takes 14 ms of 20"


@pytest.mark.parametrize(
    ("measured", "limit_ms", "why"),
    [
        (
            Measured(70 * _GIB),
            None,
            "70 GiB measured and 20 % more make 84 GiB, and a whole H100-80GB has 71.1 GiB",
        ),
        (Measured(_GIB, {7: 9.0}), 5.0, "an answer within 5 ms is asked for, and a whole H100-80GB takes 9 ms"),
        (Measured(_GIB), 5.0, "an answer within 5 ms is asked for, and no latency was measured"),
    ],
)
def test_what_no_slice_can_do_is_said(measured: Measured, limit_ms: float | None, why: str) -> None:
    assert needed(measured, _H100, latency_limit_ms=limit_ms) == Misfit(why)
