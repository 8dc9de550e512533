"""Where the runs of a model are to be, by what they took."""

import pytest

from serving_runtime.scheduler.execution.run_timing import RUNS, TOO_LONG_US, RunMeter

_QUICK, _SLOW, _INTERRUPTED = (20, 1), (3000, 1), (9000, 1)


def after(*runs: tuple[int, int], inline: bool) -> bool:
    """Return where the next run would be after runs of so many microseconds for so many requests."""
    meter = RunMeter(inline=inline)
    for run_us, requests in runs:
        meter.observe(run_us * 1000, requests)
    return meter.inline


@pytest.mark.parametrize(
    ("inline", "runs", "then"),
    [
        pytest.param(True, [_INTERRUPTED], True, id="one run decides nothing"),
        pytest.param(False, [_QUICK], False, id="nor does a quick one"),
        pytest.param(True, [_INTERRUPTED, _QUICK, _INTERRUPTED, _QUICK, _QUICK], True, id="two of five interrupted"),
        pytest.param(False, [_QUICK, _INTERRUPTED, _QUICK, _INTERRUPTED, _QUICK], True, id="so it comes back, too"),
        pytest.param(True, [_SLOW] * RUNS, False, id="a slow model leaves"),
        pytest.param(True, [_QUICK] * 2 + [_SLOW] * 8, False, id="one that has become slow leaves within nine runs"),
        pytest.param(True, [(TOO_LONG_US + 1, 1)], False, id="a run that kept the loop for very long suffices"),
        pytest.param(True, [(1500, 32)] * RUNS, True, id="many requests may share a longer run"),
        pytest.param(True, [(1500, 32), (250, 1), (250, 1), (250, 1), (1500, 32)], False, id="each request's share"),
        pytest.param(False, [(150, 1)] * RUNS, False, id="one on the edge does not come back"),
        pytest.param(True, [(150, 1)] * RUNS, True, id="nor does it leave"),
    ],
)
def test_the_middle_one_of_five_runs_decides(inline: bool, runs: list[tuple[int, int]], then: bool) -> None:
    assert after(*runs, inline=inline) is then


def test_each_five_runs_are_looked_at_alone() -> None:
    meter = RunMeter(inline=True)
    seen = []
    for run_us in [*[20] * 5, *[3000] * 5, *[20] * 5]:
        meter.observe(run_us * 1000, 1)
        seen.append(meter.inline)
    assert seen == [True] * 9 + [False] * 5 + [True]


def test_a_model_that_may_not_move_stays() -> None:
    meter = RunMeter(inline=False, moves=False)
    for _ in range(2 * RUNS):
        meter.observe(20_000, 1)
    assert not meter.inline
