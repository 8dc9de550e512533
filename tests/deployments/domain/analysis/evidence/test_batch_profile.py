import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain.analysis.evidence.batch_profile import (
    Batches,
    has_fallen,
    minus,
    plus,
    relative_throughput,
    rows_per_second,
)
from integrations.clusters.base import BatchTime

BATCHES: st.SearchStrategy[Batches] = st.dictionaries(
    st.sampled_from([1, 2, 4, 8]), st.tuples(st.integers(1, 1000), st.integers(1, 10**6))
).map(lambda found: tuple(BatchTime(size, *found[size]) for size in sorted(found)))


@given(BATCHES, BATCHES)
def test_what_was_added_is_what_is_there_less_what_was(before: Batches, added: Batches) -> None:
    assert minus(plus(before, added), before) == added
    assert not has_fallen(plus(before, added), before)


def test_a_counter_that_is_lower_began_again() -> None:
    assert has_fallen((BatchTime(1, 5, 900),), (BatchTime(1, 5, 1000),))
    assert has_fallen((), (BatchTime(8, 5, 1000),))


@pytest.mark.parametrize(
    ("canary", "stable", "expected"),
    [
        pytest.param([(1, 10, 100)], [(1, 10, 100)], 1.0, id="as fast"),
        pytest.param([(1, 10, 200)], [(1, 50, 500)], 0.5, id="twice the time per row"),
        pytest.param(
            [(1, 10, 1000)],
            [(1, 10, 1000), (8, 80, 1600)],
            1.0,
            id="small batches of little traffic are no fault",
        ),
        pytest.param(
            [(1, 10, 1000), (8, 80, 3200)],
            [(1, 1, 100), (8, 800, 16000)],
            2600 / 4200,
            id="each size weighs what the canary did of it",
        ),
        pytest.param([(1, 10, 1000)], [(8, 80, 1600)], None, id="no size in common"),
        pytest.param([], [(8, 80, 1600)], None, id="the canary did nothing"),
        pytest.param([(1, 10, 0)], [(1, 10, 0)], None, id="times too short to be counted"),
    ],
)
def test_throughput_is_compared_size_by_size(
    canary: list[tuple[int, int, int]], stable: list[tuple[int, int, int]], expected: float | None
) -> None:
    found = relative_throughput(tuple(BatchTime(*each) for each in canary), tuple(BatchTime(*each) for each in stable))
    assert found == pytest.approx(expected)


def test_rows_per_second_of_execution() -> None:
    assert rows_per_second((BatchTime(1, 10, 1000), BatchTime(8, 80, 2000))) == pytest.approx(30_000)
    assert rows_per_second(()) == 0
