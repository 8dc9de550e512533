"""Bets on losses have a mean of at most 1 while the canary is within its limit, whatever the losses look like."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain.analysis.evidence import eprocess
from deployments.domain.analysis.evidence.eprocess import Shares
from deployments.domain.analysis.evidence.quality_bets import KNOWN, graded_factors, quality_factors

CALM = 1e-9


@given(
    mean=st.floats(0.001, 0.6),
    spread=st.floats(0.0, 0.5),
    labels=st.integers(4, 300),
    margin=st.sampled_from([0.0, 0.001, 0.01, 0.05, 0.2]),
    above=st.floats(0.01, 1.0),
)
def test_no_bet_on_graded_losses_gains_even_where_a_canarys_are_all_the_same(
    mean: float, spread: float, labels: int, margin: float, above: float
) -> None:
    """Stable's mean loss of a block has two values, far apart; a canary that varies too would gain less (Jensen)."""
    high = mean + above * (1 - mean)
    low = mean * (1 - spread)
    chance = (mean - low) / (high - low)
    of_block = chance * (1 - chance) * (high - low) ** 2
    each = of_block * labels / 4  # what is known of one label: four times as much is allowed for those alike
    canary = Shares(np.array(min(1.0, mean + margin)), np.array(6.0))
    sides = [Shares(np.array(seen), np.array(float(labels))) for seen in (low, high)]
    factors = [graded_factors(canary, side, margin, known=KNOWN, mean=mean, variance=each) for side in sides]
    assert ((1 - chance) * factors[0] + chance * factors[1]).max() <= 1 + CALM


@given(
    st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.25),
    st.integers(1, 200), st.integers(0, 5000), st.booleans(),
)  # fmt: skip
def test_no_block_takes_all_of_a_bettors_capital(
    canary: float, stable: float, margin: float, mean: float, variance: float, labels: int, known: int, graded: bool
) -> None:
    of_canary, of_stable = (Shares(np.array(seen), np.array(float(labels))) for seen in (canary, stable))
    factors, value = quality_factors(
        of_canary, of_stable, margin, is_graded=graded, known=known, mean=mean, variance=variance
    )
    assert factors.shape == (eprocess.INCREASE_BETTORS,)
    assert factors.min() >= eprocess.LEAST_FACTOR - CALM
    assert value == pytest.approx(canary - stable)


def test_without_enough_of_stables_labels_only_whole_differences_are_bet_on() -> None:
    canary, stable = (Shares(np.array(seen), np.array(20.0)) for seen in (0.3, 0.02))
    few = graded_factors(canary, stable, 0.01, known=KNOWN - 1, mean=0.02, variance=0.0001)
    many = graded_factors(canary, stable, 0.01, known=KNOWN, mean=0.02, variance=0.0001)
    assert few.max() == pytest.approx(1 + 0.9 / 1.01 * 0.27)
    assert many.max() > few.max() + 0.3


def test_right_or_wrong_is_bet_on_as_errors_are() -> None:
    canary, stable = Shares(np.array(0.3), np.array(6.0)), Shares(np.array(0.02), np.array(54.0))
    factors, _ = quality_factors(canary, stable, 0.02, is_graded=False, known=0, mean=0.0, variance=0.0)
    np.testing.assert_allclose(factors, eprocess.increase_factors(canary, stable, 0.02))
