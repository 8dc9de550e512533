"""What fits, what has to go for it, and what a refusal says."""

import pytest

from serving_runtime.common.errors import NoRoom
from serving_runtime.engine.memory.budget import Budget, Idle, estimate_bytes, victims

MIB = 2**20


@pytest.mark.parametrize(
    ("lacking", "chosen"),
    [
        pytest.param(0, [], id="nothing lacks: nobody goes"),
        pytest.param(1, ["old"], id="the least recently used goes"),
        pytest.param(10, ["old"], id="it is just enough"),
        pytest.param(11, ["old", "middle"], id="it is not enough: the next goes too"),
        pytest.param(60, ["old", "middle", "new"], id="all go"),
        pytest.param(61, None, id="all would not do: nobody goes"),
    ],
)
def test_the_least_recently_used_go_until_there_is_room(lacking: int, chosen: list[str] | None) -> None:
    idle = [Idle(3.0, 30, "new"), Idle(1.0, 10, "old"), Idle(2.0, 20, "middle")]
    assert victims(lacking, idle) == chosen


def test_what_does_not_fit_is_refused_with_figures() -> None:
    budget = Budget(100 * MIB)
    first = budget.claim("a", 80 * MIB)
    with pytest.raises(NoRoom) as error:
        budget.claim("b", 30 * MIB)
    assert str(error.value) == (
        "model 'b' needs 30.0 MiB of memory, but 20.0 MiB of 100.0 MiB for models are free; unload others, or raise "
        "--model-memory-budget-bytes"
    )
    first.size_bytes = 70 * MIB
    budget.claim("b", 30 * MIB)
    assert budget.used_bytes == 100 * MIB
    budget.release(first)
    assert budget.used_bytes == 30 * MIB


def test_without_a_limit_everything_fits() -> None:
    budget = Budget(None)
    budget.claim("a", 2**60)
    assert budget.lacking(2**60) <= 0


def test_opening_a_model_is_taken_to_need_more_than_its_files() -> None:
    assert estimate_bytes(16 * MIB) > 2.27 * 16 * MIB
    assert estimate_bytes(200 * MIB) > 1.28 * 200 * MIB
