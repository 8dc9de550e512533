"""Token buckets: a burst, then the rate, and a bounded number of keys."""

from hypothesis import given
from hypothesis import strategies as st

from common.token_buckets import TokenBuckets


def test_a_burst_passes_and_then_the_rate() -> None:
    buckets = TokenBuckets()
    first = [buckets.take("a", per_minute=600, now=0.0) for _ in range(101)]
    assert [each.allowed for each in first] == [True] * 100 + [False]
    assert first[0].headers == {"RateLimit-Limit": "100", "RateLimit-Remaining": "99", "RateLimit-Reset": "1"}
    assert first[-1].headers["Retry-After"] == "1"
    assert not buckets.take("a", per_minute=600, now=0.05).allowed
    assert buckets.take("a", per_minute=600, now=0.1001).allowed
    assert buckets.take("a", per_minute=600, now=1000.0).remaining == 99


def test_a_client_that_asks_each_second_is_never_refused() -> None:
    buckets = TokenBuckets()
    assert all(buckets.take("ci", per_minute=60, now=float(second)).allowed for second in range(3600))


def test_small_limits_hold_ten() -> None:
    buckets = TokenBuckets()
    found = [buckets.take("a", per_minute=1, now=0.0) for _ in range(11)]
    assert [each.allowed for each in found] == [True] * 10 + [False]
    assert found[-1].wait_s == 60


def test_looking_takes_nothing() -> None:
    buckets = TokenBuckets()
    for _ in range(10):
        assert buckets.take("a", per_minute=1, now=0.0, count=0).remaining == 10
    for _ in range(10):
        buckets.take("a", per_minute=1, now=0.0)
    assert not buckets.take("a", per_minute=1, now=0.0, count=0).allowed


def test_keys_are_apart_and_the_oldest_is_forgotten() -> None:
    buckets = TokenBuckets(most_keys=2)
    for _ in range(10):
        buckets.take("a", per_minute=1, now=0.0)
    assert buckets.take("b", per_minute=1, now=0.0).remaining == 9
    assert not buckets.take("a", per_minute=1, now=0.0).allowed
    for key in ("c", "d"):
        buckets.take(key, per_minute=1, now=0.0)
    assert len(buckets) == 2


@given(st.integers(1, 6000), st.lists(st.floats(0, 5), max_size=200))
def test_in_any_time_no_more_than_the_burst_and_the_rate(per_minute: int, waits: list[float]) -> None:
    buckets, now, allowed = TokenBuckets(), 0.0, 0
    for wait in waits:
        now += wait
        verdict = buckets.take("a", per_minute=per_minute, now=now)
        allowed += verdict.allowed
        assert 0 <= verdict.remaining <= verdict.limit
    assert allowed <= max(10, per_minute // 6) + per_minute / 60 * now + 1e-6 * len(waits) + 1
