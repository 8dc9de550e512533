"""Average run length and delay of the e-detector, by simulation with the code that watches services."""

from collections.abc import Callable

import numpy as np
import pytest

from feedback.domain.drift import detector
from feedback.domain.drift.detector import Part
from feedback.domain.drift.features import Floats, Kind
from feedback.domain.drift.reference import Reference, learn, nothing_learned, reference_of
from feedback.domain.drift.sketch import Bins, bins_of

ROWS = 100
Draw = Callable[[np.random.Generator, int], Floats]
TEN = Bins(Kind.CLASS, classes=tuple(str(number) for number in range(10)))


def classes(*, more_of_3: float = 0.0, clump: int = 1) -> Draw:
    """Return counts of ten classes in a block; `clump` rows that follow each other have the same class."""
    shares = np.full(11, 0.1 - more_of_3 / 9)
    shares[3], shares[-1] = 0.1 + more_of_3, 0.0
    return lambda random, runs: np.array(random.multinomial(ROWS // clump, shares, size=runs) * clump, float)


def numbers(bins: Bins, *, moved: float = 0.0) -> Draw:
    """Return counts of normal numbers in a block."""

    def draw(random: np.random.Generator, runs: int) -> Floats:
        values = random.normal(moved, 1, (runs, ROWS))
        places = np.searchsorted(np.array(bins.edges), values, side="right") + np.arange(runs)[:, None] * bins.size
        return np.bincount(places.ravel(), minlength=runs * bins.size).reshape(runs, bins.size).astype(float)

    return draw


def repeated(bins: Bins, random: np.random.Generator, runs: int) -> Floats:
    """Return counts of normal numbers in a block, each ten times in a row."""
    values = random.normal(size=(runs, ROWS // 10))
    places = np.searchsorted(np.array(bins.edges), values, side="right") + np.arange(runs)[:, None] * bins.size
    counts = np.bincount(places.ravel(), minlength=runs * bins.size)
    return np.array(10 * counts.reshape(runs, bins.size), float)


def learned(bins: Bins, draw: Draw, random: np.random.Generator, blocks: int = 100) -> Reference:
    sums = nothing_learned(len(bins.events(np.zeros(bins.size))))
    for counts in draw(random, blocks):
        sums = learn(sums, bins.events(counts), ROWS)
    return reference_of(sums)


def run_lengths(bins: Bins, reference: Reference, draw: Draw, log_threshold: float, *, runs: int, most: int) -> Floats:
    """Return the number of blocks until the alarm of each run; `most` where none came."""
    random = np.random.default_rng(11)
    capital, lengths = detector.calm(len(reference.counts), (runs,)), np.full(runs, most, float)
    for block in range(1, most):
        capital = detector.detect(capital, bins.events(draw(random, runs)), np.full(runs, float(ROWS)), reference)
        lengths[(detector.evidence(capital) >= log_threshold) & (lengths == most)] = block
        if (lengths < most).all():
            break
    return lengths


@pytest.mark.parametrize("clump", [1, 5, 10])
def test_average_run_length_is_at_least_the_one_stated(clump: int) -> None:
    """Each reference is one of many that might have been learned; rows of a clump depend on each other."""
    random, draw = np.random.default_rng(3), classes(clump=clump)
    means = []
    for _ in range(6):
        reference = learned(TEN, draw, random)
        means.append(run_lengths(TEN, reference, draw, np.log(100), runs=30, most=200).mean())
    assert np.mean(means) >= 100
    assert min(means) >= 100


def test_a_theorem_where_rows_are_independent_and_shares_are_at_the_bound() -> None:
    """The worst that is no drift: the share is as far as the reference's bound and the margin allow."""
    two = bins_of(Kind.CLASS, ["a"] * 250 + ["b"] * 250)
    assert two is not None
    reference = Reference(np.array([500.0, 500.0, 0.0]), 1000.0, np.ones(3), float(ROWS))
    share = reference.bounds()[1][0] + detector.MARGIN

    def draw(random: np.random.Generator, runs: int) -> Floats:
        return random.multinomial(ROWS, [share, 1 - share, 0.0], size=runs).astype(float)

    lengths = run_lengths(two, reference, draw, np.log(20), runs=400, most=400)
    assert lengths.mean() >= 20


def test_values_that_repeat_are_no_drift() -> None:
    """Each value comes ten times, as of a client that sends the same again; most bins of the tails are rare."""
    random = np.random.default_rng(21)
    alarms = 0
    for _ in range(40):
        first = np.repeat(random.normal(size=50), 10)
        bins = bins_of(Kind.NUMBER, first.tolist())
        assert bins is not None

        def draw(random: np.random.Generator, runs: int, bins: Bins = bins) -> Floats:
            return repeated(bins, random, runs)

        reference = learned(bins, draw, random)
        lengths = run_lengths(bins, reference, draw, detector.threshold(10), runs=5, most=200)
        alarms += int((lengths < 200).sum())
    assert alarms <= 2


@pytest.mark.parametrize(("points", "at_most"), [(0.05, 120), (0.10, 12), (0.20, 4)])
def test_delay_for_a_class_that_is_answered_more_often(points: float, at_most: int) -> None:
    reference = learned(TEN, classes(), np.random.default_rng(5), blocks=500)
    draw = classes(more_of_3=points)
    lengths = run_lengths(TEN, reference, draw, detector.threshold(10), runs=40, most=400)
    assert np.median(lengths) <= at_most


@pytest.mark.parametrize(("deviations", "at_most"), [(0.25, 25), (0.5, 6), (1.0, 2)])
def test_delay_for_a_mean_that_moved(deviations: float, at_most: int) -> None:
    random = np.random.default_rng(5)
    bins = bins_of(Kind.NUMBER, random.normal(size=500).tolist())
    assert bins is not None
    reference = learned(bins, numbers(bins), random, blocks=500)
    draw = numbers(bins, moved=deviations)
    lengths = run_lengths(bins, reference, draw, detector.threshold(10), runs=40, most=200)
    assert np.median(lengths) <= at_most


@pytest.mark.parametrize(("more", "proved"), [(0.0, (0.0, 0.05)), (0.2, (0.95, 1.0))])
def test_a_canary_that_differs_is_proved_and_an_equal_one_rarely(more: float, proved: tuple[float, float]) -> None:
    random = np.random.default_rng(9)
    reference = learned(TEN, classes(), random)
    runs, blocks = 200, 30
    capital, found = detector.equal(11, (runs,)), np.zeros(runs, bool)
    for _ in range(blocks):
        sides = (classes(more_of_3=more), classes())
        canary, stable = (Part(draw(random, runs), np.full(runs, float(ROWS))) for draw in sides)
        capital = detector.compare(capital, canary, stable, reference)
        found |= detector.evidence(capital) >= detector.difference_threshold(1)
    assert proved[0] <= found.mean() <= proved[1]
