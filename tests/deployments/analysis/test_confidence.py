"""The bounds are tested for what they promise: ever wrong, looking after every request, at most alpha of the time."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.analysis.confidence import BetaMixture, Share, lower_bound, upper_bound

TEST = BetaMixture()


@pytest.mark.parametrize(
    ("share", "limit", "clear"),
    [
        pytest.param(Share(1, 20), 0.01, False, id="one unlucky request out of 20 proves nothing"),
        pytest.param(Share(2, 2), 0.01, False, id="two out of two prove nothing"),
        pytest.param(Share(30, 40), 0.01, True, id="30 of 40 are clear"),
        pytest.param(Share(5, 5), 0.01, True, id="5 of 5 are clear"),
        pytest.param(Share(5, 300), 0.01, False, id="5 of 300 are above 1 %, but not clearly"),
        pytest.param(Share(100, 1000), 0.05, True, id="10 % of 1000 are clearly above 5 %"),
        pytest.param(Share(0, 0), 0.01, False, id="nothing seen"),
        pytest.param(Share(5, 100_000), 0.0, True, id="a limit of 0 is clearly broken by 5 failures"),
    ],
)
def test_whether_evidence_is_clear(share: Share, limit: float, clear: bool) -> None:
    assert TEST.clearly_above(share, limit) is clear


@pytest.mark.parametrize(
    ("canary", "stable", "clear"),
    [
        pytest.param(Share(30, 100), Share(3, 900), True, id="30 % against 0.3 %"),
        pytest.param(Share(30, 100), Share(270, 900), False, id="the same share as stable"),
        pytest.param(Share(30, 100), Share(0, 2), False, id="stable has too few requests to say"),
        pytest.param(Share(0, 100), Share(900, 900), False, id="better than stable"),
        pytest.param(Share(4, 4), Share(0, 9000), False, id="too few failures"),
    ],
)
def test_whether_evidence_against_stable_is_clear(canary: Share, stable: Share, clear: bool) -> None:
    assert TEST.clearly_above_stable(canary, stable, 0.01) is clear


@given(st.integers(0, 3000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total))))
def test_the_share_seen_lies_between_the_bounds(counts: tuple[int, int]) -> None:
    share = Share(*counts)
    assert 0 <= lower_bound(share, 0.001) <= share.fraction + 1e-12
    if share.total:
        assert share.fraction - 1e-12 <= upper_bound(share, 0.001) <= 1


@given(st.integers(1, 400), st.integers(0, 400))
def test_more_bad_requests_never_lower_the_bound(bad: int, good: int) -> None:
    total = bad + good
    assert lower_bound(Share(bad, total), 0.001) >= lower_bound(Share(bad - 1, total), 0.001)


@pytest.mark.parametrize("true_share", [0.01, 0.05, 0.15])
def test_looking_after_every_request_is_wrong_less_often_than_alpha(true_share: float) -> None:
    """4000 canaries exactly at the limit, looked at after each of 1500 requests; at most 5 % may ever look clear."""
    alpha, runs, requests = 0.05, 4000, 1500
    bad = np.cumsum(np.random.default_rng(7).random((runs, requests)) < true_share, axis=1)
    totals = np.arange(1, requests + 1)
    # The smallest count that is clear rises with the total, so it is looked up instead of computed for each run.
    test = BetaMixture(alpha=alpha, least_bad=1)
    threshold = np.empty(requests, dtype=int)
    count = 1
    for index, total in enumerate(totals):
        while count <= total and not test.clearly_above(Share(count, int(total)), true_share):
            count += 1
        threshold[index] = count
        count = max(1, count - 1)
    ever_wrong = (bad >= threshold).any(axis=1).mean()
    assert ever_wrong <= alpha


@pytest.mark.parametrize(
    ("true_share", "within"),
    [
        pytest.param(1.0, 6, id="a canary that always fails: after 6 requests"),
        pytest.param(0.2, 80, id="20 % failures: after 80"),
        pytest.param(0.1, 220, id="10 % failures: after 220"),
        pytest.param(0.05, 800, id="5 % failures: after 800"),
    ],
)
def test_nine_of_ten_bad_canaries_are_clear_soon(true_share: float, within: int) -> None:
    random = np.random.default_rng(3)
    failed = (random.random((300, within)) < true_share).sum(axis=1)
    assert np.mean([TEST.clearly_above(Share(int(bad), within), 0.01) for bad in failed]) >= 0.9
