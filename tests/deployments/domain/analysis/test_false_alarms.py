"""Whole rollouts by the thousand, through the product's own e-processes: what alpha promises, and what it costs.

`benchmarks/analysis/curves.py` runs many more and draws the curves of docs/reference/analysis.md.
"""

from math import sqrt
from pathlib import Path

import numpy as np
import pytest

from benchmarks.analysis.recorded import RUNS, recorded_rollouts
from benchmarks.analysis.rollouts import Bases, judge, simulate
from benchmarks.analysis.traffic import KINDS

ALPHA = 0.01
RECORDED = Path(__file__).with_name("recorded.npz")


def _tolerated(runs: int) -> float:
    """Return the largest share of false alarms that chance explains where each has a probability of alpha."""
    return ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / runs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "bases",
    [
        pytest.param(Bases(), id="well within the limits"),
        pytest.param(Bases(server_errors=0.008, slow=0.08), id="close to the limits"),
    ],
)
def test_good_canaries_are_failed_no_more_often_than_alpha(kind: str, bases: Bases) -> None:
    runs = 300
    ends = simulate(KINDS[kind], bases, runs=runs, blocks=100)
    assert np.isfinite(ends.block).mean() <= _tolerated(runs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("bases", "requests"),
    [
        pytest.param(Bases(worse_errors=1.0), 60, id="all fail"),
        pytest.param(Bases(worse_errors=0.2), 150, id="a fifth fails"),
        pytest.param(Bases(worse_errors=0.1), 300, id="a tenth fails"),
        pytest.param(Bases(worse_slow=0.9), 80, id="nine of ten are slow"),
        pytest.param(Bases(worse_slow=0.5), 120, id="half are slow"),
    ],
)
def test_bad_canaries_are_failed_within_few_requests_whatever_the_traffic(
    kind: str, bases: Bases, requests: int
) -> None:
    ends = simulate(KINDS[kind], bases, runs=60, blocks=120)
    assert np.isfinite(ends.block).mean() >= 0.95
    assert np.median(ends.requests) <= requests


def test_a_canary_that_fails_everything_is_failed_within_about_ten_seconds() -> None:
    ends = simulate(KINDS["independent"], Bases(worse_errors=1.0), runs=200, blocks=20)
    assert np.median(ends.block) <= 6, "blocks of two seconds"


def test_of_200_rollouts_of_the_same_version_on_recorded_runtimes_hardly_any_fails() -> None:
    """A/A: histograms of four real replicas of one version (`benchmarks/analysis/record.py`), one the canary."""
    assert RUNS == 200
    bad, sizes = recorded_rollouts(RECORDED)
    assert sizes.canary.shape[1] == RUNS
    assert bad["slow"][0].sum() > 100, "the canary was slow at times, so there was something to be fooled by"
    ends = judge(bad, sizes, alpha=ALPHA)
    assert np.isfinite(ends.block).sum() <= RUNS * _tolerated(RUNS)


def test_on_the_same_recordings_a_slower_canary_is_found() -> None:
    bad, sizes = recorded_rollouts(RECORDED, extra_slow=0.5)
    ends = judge(bad, sizes, alpha=ALPHA)
    assert np.isfinite(ends.block).mean() >= 0.95
    assert np.median(ends.requests) <= 250
