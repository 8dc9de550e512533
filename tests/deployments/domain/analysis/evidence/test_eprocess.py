"""The bets are tested for what they promise: a mean of at most 1 while the canary is within its limit."""

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.domain.analysis.evidence import eprocess
from deployments.domain.analysis.evidence.eprocess import Floats, Shares
from deployments.domain.analysis.measurements.errors import ErrorIncrease, ErrorLimit
from deployments.domain.analysis.measurements.latency import SlowRequests

CALM = 1e-9


def _binomial(requests: int, share: float) -> Floats:
    """Return [requests + 1] how likely each number of bad requests is."""
    likely = np.array([1.0])
    for _ in range(requests):
        likely = np.convolve(likely, [1 - share, share])
    return likely


def _mean_factors(question: ErrorLimit | ErrorIncrease | SlowRequests, canary: Floats, stable: Floats) -> Floats:
    """Return [bettors] the mean of each factor where both sides' numbers of bad requests are so likely."""
    shares = np.meshgrid(*(np.arange(len(likely)) / (len(likely) - 1) for likely in (canary, stable)), indexing="ij")
    sizes = (np.array(len(likely) - 1.0) for likely in (canary, stable))
    factors, _ = question.factors(*(Shares(seen, size) for seen, size in zip(shares, sizes, strict=True)))
    return np.asarray(np.einsum("c,s,csb->b", canary, stable, factors))


@pytest.mark.parametrize("requests", [4, 6, 17])
@pytest.mark.parametrize("stable_requests", [4, 12, 54])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.2, 0.6, 0.97])
def test_no_stake_on_an_increase_gains_where_there_is_none(requests: int, stable_requests: int, share: float) -> None:
    """Computed exactly, for every bettor: no worse than the margin, and exactly as much worse as it allows."""
    question = ErrorIncrease(1.0, 100)
    stable = _binomial(stable_requests, share)
    for canary_share in {share, min(1.0, share + 0.01)}:
        means = _mean_factors(question, _binomial(requests, canary_share), stable)
        assert means.max() <= 1 + CALM


@pytest.mark.parametrize("requests", [4, 6, 17])
@pytest.mark.parametrize("stable_requests", [4, 7, 10, 12, 54])
@pytest.mark.parametrize(("limit", "quantile"), [(15.0, 0.95), (20.0, 0.9), (6.0, 0.99), (5.0, 0.95), (60.0, 0.5)])
def test_no_stake_on_slowness_gains_within_the_limit_however_slow_everything_is(
    requests: int, stable_requests: int, limit: float, quantile: float
) -> None:
    question = SlowRequests(limit, quantile, 100)
    for share in np.linspace(0, 1, 41):
        allowed = min(1.0, max(limit / 100, share + question.headroom_percent / 100))
        means = _mean_factors(question, _binomial(requests, allowed), _binomial(stable_requests, float(share)))
        assert means.max() <= 1 + CALM, share


@pytest.mark.parametrize("limit", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("stable_requests", [1, 4, 20, 54, 250])
def test_no_stake_on_errors_gains_where_all_fail_alike(stable_requests: int, limit: float) -> None:
    """The whole range of outages that both share."""
    question = ErrorLimit(limit, 100, is_compared=True)
    for share, requests in product([*np.linspace(0, 0.1, 26), *np.linspace(0.12, 1, 23)], (4, 17)):
        means = _mean_factors(question, _binomial(requests, float(share)), _binomial(stable_requests, float(share)))
        assert means.max() <= 1 + CALM, share


def test_where_stable_is_not_asked_its_outage_excuses_nothing() -> None:
    bad, worse = (Shares(np.array(seen), np.array(50.0)) for seen in (0.5, 0.9))
    compared, _ = ErrorLimit(1.0, 100, is_compared=True).factors(bad, worse)
    alone, _ = ErrorLimit(1.0, 100, is_compared=False).factors(bad, worse)
    assert compared.max() <= 1
    assert alone.max() > 4


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.integers(0, 100))
def test_no_block_takes_all_of_a_bettors_capital(canary: float, stable: float, limit: float, requests: int) -> None:
    shares = Shares(np.array(canary), np.array(20.0)), Shares(np.array(stable), np.array(float(requests)))
    slow = SlowRequests(100 * max(limit, 0.05), 0.95, 100)
    for question in (ErrorLimit(100 * limit, 100, True), ErrorIncrease(100 * limit, 100), slow):
        factors, _ = question.factors(*shares)
        assert factors.min() >= eprocess.LEAST_FACTOR - CALM


def test_a_canary_exactly_at_its_limit_is_failed_less_often_than_alpha() -> None:
    """4000 canaries with independent requests, looked at after each of 300 blocks."""
    alpha, random = 0.05, np.random.default_rng(7)
    wealth, ever = eprocess.fresh(eprocess.LIMIT_BETTORS, (4000,)), np.zeros(4000, dtype=bool)
    for _ in range(300):
        share = random.binomial(6, 0.15, 4000) / 6
        wealth = eprocess.bet(wealth, eprocess.limit_factors(share, 0.15), share)
        ever |= eprocess.log_capital(wealth) >= eprocess.threshold(alpha, 1)
    assert ever.mean() <= alpha


@pytest.mark.parametrize(
    ("share", "within"),
    [
        pytest.param(1.0, 6, id="all fail: 6 blocks"),
        pytest.param(0.2, 30, id="a fifth fails: 30 blocks of 6 requests"),
        pytest.param(0.1, 70, id="a tenth fails: 70"),
        pytest.param(0.05, 250, id="a twentieth fails: 250"),
    ],
)
def test_nine_of_ten_bad_canaries_are_failed_soon(share: float, within: int) -> None:
    random = np.random.default_rng(3)
    wealth, ever = eprocess.fresh(eprocess.LIMIT_BETTORS, (400,)), np.zeros(400, dtype=bool)
    for _ in range(within):
        seen = random.binomial(6, share, 400) / 6
        wealth = eprocess.bet(wealth, eprocess.limit_factors(seen, 0.01), seen)
        ever |= eprocess.log_capital(wealth) >= eprocess.threshold(0.01, 4)
    assert ever.mean() >= 0.9


@pytest.mark.parametrize(("good", "at_most"), [(30, 15), (300, 20), (3000, 60)])
def test_a_canary_that_breaks_late_is_seen_almost_as_soon(good: int, at_most: int) -> None:
    wealth = eprocess.fresh(eprocess.LIMIT_BETTORS)
    for _ in range(good):
        wealth = eprocess.bet(wealth, eprocess.limit_factors(0.0, 0.01), 0.0)
    blocks = 0
    while eprocess.log_capital(wealth) < eprocess.threshold(0.01, 4):
        wealth, blocks = eprocess.bet(wealth, eprocess.limit_factors(1.0, 0.01), 1.0), blocks + 1
    assert blocks <= at_most


@pytest.mark.parametrize(
    ("values", "least", "most"),
    [
        pytest.param([0.0] * 50, 1.0, 1.3, id="nothing ever happens"),
        pytest.param([0.0, 1.0] * 25, 1.0, 1.3, id="alternating"),
        pytest.param(([1.0] * 5 + [0.0] * 15) * 10, 3.9, 4.0, id="five in a row in each twenty"),
    ],
)
def test_runs_of_equal_blocks_are_measured(values: list[float], least: float, most: float) -> None:
    wealth = eprocess.fresh(eprocess.LIMIT_BETTORS)
    for value in values:
        wealth = eprocess.bet(wealth, eprocess.limit_factors(value, 0.5), value)
    assert least <= eprocess.run_blocks(wealth) <= most


def test_many_rollouts_at_once_are_judged_as_each_alone_and_blocks_without_a_stake_change_nothing() -> None:
    random = np.random.default_rng(1)
    shares, taken = random.random((20, 5)), random.random((20, 5)) < 0.7
    together = eprocess.fresh(eprocess.LIMIT_BETTORS, (5,))
    alone = [eprocess.fresh(eprocess.LIMIT_BETTORS) for _ in range(5)]
    for share, is_taken in zip(shares, taken, strict=True):
        together = eprocess.bet(together, eprocess.limit_factors(share, 0.3), share, is_taken)
        for index in np.flatnonzero(is_taken):
            alone[index] = eprocess.bet(alone[index], eprocess.limit_factors(share[index], 0.3), share[index])
    np.testing.assert_allclose(eprocess.log_capital(together), [eprocess.log_capital(each) for each in alone])


def test_capital_survives_json_to_the_last_bit() -> None:
    wealth = eprocess.fresh(eprocess.LIMIT_BETTORS)
    for share in (0.1, 0.7, 1 / 3):
        wealth = eprocess.bet(wealth, eprocess.limit_factors(share, 0.3), share)
    stored = eprocess.stored_wealth(json.loads(json.dumps(eprocess.wealth_json(wealth))))
    assert stored.logs.tolist() == wealth.logs.tolist()
    assert stored.moments.tolist() == wealth.moments.tolist()
