"""Which steps a request needs and which can run, as tables."""

import pytest

from serving_runtime.config.ensembles import Ensemble, Step
from serving_runtime.scheduler.ensembles.graph import Graph

pytestmark = pytest.mark.feature("C10")

#   x -> 0 -> u -> 1 -> v -> 3 -> y        z comes of step 2 alone, w is made beside y
#   x ------------ 2 -> z ---^
GRAPH = Graph(
    Ensemble(
        (
            Step("a", "", {"i": "x"}, {"o": "u"}),
            Step("b", "", {"i": "u"}, {"o": "v"}),
            Step("c", "", {"i": "x"}, {"o": "z"}),
            Step("d", "", {"i": "v", "j": "z"}, {"o": "y", "p": "w"}),
        )
    )
)


@pytest.mark.parametrize(
    ("outputs", "steps"),
    [
        pytest.param(["y"], (0, 1, 2, 3), id="all that it depends on"),
        pytest.param(["y", "w"], (0, 1, 2, 3), id="two of one step"),
        pytest.param(["z"], (2,), id="a branch alone"),
        pytest.param(["z", "u"], (0, 2), id="two branches, nothing behind them"),
        pytest.param(["z"], (2,), id="the same again"),
    ],
)
def test_only_what_is_asked_for_is_run(outputs: list[str], steps: tuple[int, ...]) -> None:
    assert GRAPH.needed(outputs) == steps


@pytest.mark.parametrize(
    ("waiting", "tensors", "ready"),
    [
        pytest.param((0, 1, 2, 3), {"x"}, [0, 2], id="branches run at the same time"),
        pytest.param((1, 3), {"x", "u"}, [1], id="a step follows what makes its input"),
        pytest.param((3,), {"x", "u", "v"}, [], id="all inputs must be there"),
        pytest.param((3,), {"x", "u", "v", "z"}, [3], id="then it runs"),
        pytest.param((), {"x"}, [], id="what has begun does not begin again"),
    ],
)
def test_a_step_runs_when_its_inputs_are_there(waiting: tuple[int, ...], tensors: set[str], ready: list[int]) -> None:
    assert GRAPH.ready(waiting, tensors) == ready
