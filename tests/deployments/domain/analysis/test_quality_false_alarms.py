"""Rollouts gated on quality by the hundred, through the product's own bets; `benchmarks/analysis` runs thousands."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from benchmarks.analysis import traffic
from benchmarks.analysis.labels import SCORERS, Labels, Scored, rollouts, uneven
from deployments.domain.analysis.evidence.labelled import Habits, Losses
from deployments.domain.analysis.evidence.stable_traffic import Traffic
from deployments.domain.analysis.forecast import plan
from deployments.domain.policy import Detect, Gate, Policy, Quality, Step

ALPHA, RUNS = 0.01, 200
TOLERATED = ALPHA + 3 * sqrt(ALPHA * (1 - ALPHA) / RUNS)
LABELS = Labels()


@pytest.mark.parametrize("scorer", SCORERS)
def test_a_canary_at_its_limit_is_failed_no_more_often_than_alpha(scorer: str) -> None:
    of = SCORERS[scorer]
    assert rollouts(of, LABELS, worse=of.limit, runs=RUNS, cells=60).failed <= TOLERATED


@pytest.mark.parametrize(
    "labels",
    [
        pytest.param(replace(LABELS, labelled={"canary": (0.3, 0.3), "stable": (0.9, 0.9)}), id="missing at random"),
        pytest.param(replace(LABELS, shares=traffic.bursts_of_one_side), id="bursts of one side"),
        pytest.param(replace(LABELS, shares=traffic.shared_outages), id="shared outages"),
        pytest.param(replace(LABELS, slices=5), id="slices"),
        pytest.param(replace(LABELS, stable=6.0, paired=0.5), id="pairs"),
    ],
)
def test_nor_where_labels_come_in_other_ways(labels: Labels) -> None:
    assert rollouts(SCORERS["accuracy"], labels, worse=0.02, runs=RUNS, cells=60).failed <= TOLERATED


def test_losses_that_are_spread_otherwise_than_stables_mislead_nothing() -> None:
    labels = replace(LABELS, stable=24.0)
    assert rollouts(Scored(uneven, 0.001), labels, worse=0.001, runs=RUNS, cells=300).failed <= TOLERATED
    as_shares = Scored(uneven, 0.001, is_graded=False)
    assert rollouts(as_shares, labels, worse=0.001, runs=RUNS, cells=300).failed > 0.5, (
        "bets for right or wrong answers"
    )


def test_what_breaks_are_labels_that_come_by_the_answer_on_one_side_only() -> None:
    labels = replace(LABELS, labelled={"canary": (0.4, 1.0), "stable": (1.0, 1.0)})
    assert rollouts(SCORERS["accuracy"], labels, worse=0.02, runs=RUNS, cells=200).failed > 0.3


@pytest.mark.parametrize(("scorer", "within"), [("accuracy", 400), ("absoluteError", 350), ("squaredError", 350)])
def test_a_version_that_is_wrong_by_a_fifth_more_is_found_soon(scorer: str, within: int) -> None:
    ends = rollouts(SCORERS[scorer], LABELS, worse=0.2, runs=60, cells=100, measurements=5)
    assert ends.failed == 1
    assert np.median(ends.labels) <= within


def test_pairs_need_fewer_labels_than_as_many_of_each_sides_own_requests() -> None:
    pairs, own = (replace(LABELS, stable=6.0, paired=paired) for paired in (0.5, None))
    needed = [
        np.median(rollouts(SCORERS["accuracy"], labels, worse=0.2, runs=60, cells=200, measurements=5).labels)
        for labels in (pairs, own)
    ]
    assert needed[0] < 0.6 * needed[1]


@pytest.mark.parametrize("worse", [10.0, 20.0, 30.0])
def test_the_plan_says_about_as_many_labels_as_simulated_rollouts_need(worse: float) -> None:
    gate = Gate(quality=Quality("accuracy", 2.0), detect=Detect(5.0, 30.0, worse))
    labels = {"accuracy": Habits("percent wrong", 100.0, 60.0, Losses(1000, 50.0, 50.0), 30.0)}
    [step] = plan(Policy("p", (Step(20, gate=gate),)), Traffic(labels=labels))
    [found] = [each for each in step.detections if each.metric == "quality:accuracy"]
    sizes = replace(LABELS, canary=12.0, stable=48.0, due=1.0)
    needed = float(
        rollouts(SCORERS["accuracy"], sizes, worse=worse / 100, runs=60, cells=200, measurements=5).labels.mean()
    )
    assert found.requests is not None
    assert 0.6 * needed <= found.requests <= 1.6 * needed


def test_the_plan_warns_of_labels_that_are_too_few_too_late_or_missing() -> None:
    gate = Gate(quality=Quality("accuracy", 2.0, min_labels=20), detect=Detect(5.0, 30.0, 10.0))
    seen = Habits("percent wrong", 100.0, 60.0, Losses(1000, 50.0, 50.0), 0.1)

    def warned(habits: Habits) -> str:
        [step] = plan(Policy("p", (Step(20, gate=gate),)), Traffic(labels={"accuracy": habits}))
        return "; ".join(step.warnings)

    assert "quality.minLabels is 20, fewer than it takes to fail such a canary" in warned(seen)
    assert "the deadline for quality is 5m, less than that takes" in warned(seen)
    assert "no label has been joined with an answer of stable yet" in warned(Habits("percent wrong", 100.0))
    assert "no scorer" in warned(Habits(problem="there is no scorer accuracy"))
    [last] = plan(Policy("p", (Step(100, gate=gate),)), Traffic(labels={"accuracy": seen}))
    assert "at weight 100 there are no answers of stable" in "; ".join(last.warnings)
