"""Advice on pools whose memory is too small."""

import pytest

from pools.domain.advice import advice
from pools.domain.figures import PoolFigures


@pytest.mark.parametrize(
    ("figures", "says"),
    [
        pytest.param(PoolFigures(), [], id="nothing came yet"),
        pytest.param(PoolFigures(hits=700, misses=300, evictions=200), [], id="a fifth of the requests: as the alert"),
        pytest.param(PoolFigures(hits=0, misses=19, evictions=19), [], id="few evictions"),
        pytest.param(
            PoolFigures(hits=500, misses=500, evictions=450),
            ["Models were evicted 450 times for 45 % of the requests since the replicas started"],
            id="thrashing",
        ),
        pytest.param(PoolFigures(evictions=30), ["Models were evicted 30 times since"], id="loads without requests"),
        pytest.param(PoolFigures(load_failures={"corrupt": 9, "no-room": 2}), [], id="other failures"),
        pytest.param(
            PoolFigures(load_failures={"too-large": 1}), ["1 load failed, since the model never fits"], id="one load"
        ),
        pytest.param(
            PoolFigures(hits=9, misses=91, evictions=90, load_failures={"too-large": 2}),
            ["Models were evicted 90 times for 90 %", "2 loads failed, since the model never fits"],
            id="both",
        ),
    ],
)
def test_it_says_what_does_not_fit(figures: PoolFigures, says: list[str]) -> None:
    found = advice(figures)
    assert len(found) == len(says)
    assert all(each.startswith(words) for each, words in zip(found, says, strict=True))
    assert all("aise memoryBudget" in each for each in found)


def test_it_names_services_whose_models_never_fit() -> None:
    assert advice(PoolFigures(), ["vision/digits"])[0].startswith("The model of vision/digits never fits")
    [both] = advice(PoolFigures(load_failures={"too-large": 5}), ["vision/digits", "vision/faces"])
    assert both.startswith("5 loads failed, since the model of vision/digits and of vision/faces never fits")
