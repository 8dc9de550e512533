import pytest
from hypothesis import given
from hypothesis import strategies as st

from integrations.clusters.weight_distribution import Claim, explanation, is_first_start, shares

CLAIMS = st.lists(
    st.builds(Claim, st.uuids().map(str), st.integers(0, 100), st.integers(0, 3)),
    max_size=6,
    unique_by=lambda c: c.revision,
)


@pytest.mark.parametrize(
    ("claims", "expected", "said"),
    [
        pytest.param(
            [("a", 90, 1), ("b", 10, 2)], {"a": 90, "b": 10}, "", id="all ready: as asked for, whatever the replicas"
        ),
        pytest.param(
            [("a", 90, 1), ("b", 10, 0)],
            {"a": 100, "b": 0},
            "b (10 %); the requests go",
            id="a canary that is not ready",
        ),
        pytest.param(
            [("a", 50, 0), ("b", 30, 1), ("c", 20, 1)], {"a": 0, "b": 60, "c": 40}, "a (50 %)", id="in proportion"
        ),
        pytest.param([("a", 34, 0), ("b", 33, 1), ("c", 33, 1)], {"a": 0, "b": 50, "c": 50}, "a (34 %)", id="alike"),
        pytest.param(
            [("a", 1, 1), ("b", 1, 1), ("c", 1, 1)], {"a": 34, "b": 33, "c": 33}, "", id="whole percents sum to 100"
        ),
        pytest.param(
            [("a", 100, 0), ("b", 0, 1)], {"a": 0, "b": 0}, "are refused until one is", id="weight 0 gets nothing ever"
        ),
        pytest.param([("a", 100, 0)], {"a": 0}, "a (100 %); requests are refused", id="nothing ready"),
        pytest.param([("a", 0, 1)], {"a": 0}, "", id="nothing given"),
        pytest.param([], {}, "", id="nothing there"),
    ],
)
def test_shares(claims, expected, said):
    given = [Claim(*claim) for claim in claims]
    assert shares(given) == expected
    sentence = explanation(given, served=any(expected.values()))
    assert said in sentence
    assert bool(sentence) == bool(said)


@given(CLAIMS)
def test_shares_sum_to_100_and_go_to_the_ready_only(claims):
    result = shares(claims)
    able = {claim.revision for claim in claims if claim.ready_replicas and claim.weight_percent}
    assert sum(result.values()) == (100 if able else 0)
    assert {revision for revision, share in result.items() if share} <= able


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        pytest.param([Claim("a", 100, 0)], True, id="starting for the first time"),
        pytest.param([Claim("a", 100, 1)], False, id="ready"),
        pytest.param([Claim("a", 100, 0, was_ready=True)], False, id="it was ready and died"),
        pytest.param([Claim("a", 90, 0), Claim("b", 10, 0, was_ready=True)], False, id="one of two was ready"),
        pytest.param(
            [Claim("a", 100, 0), Claim("b", 0, 1, was_ready=True)], True, id="what has no weight does not count"
        ),
        pytest.param([Claim("a", 0, 0)], False, id="nobody was given weight"),
        pytest.param([], False, id="nothing there"),
    ],
)
def test_first_start(claims, expected):
    assert is_first_start(claims) is expected
