"""The sample is a function of the request id alone."""

from hypothesis import given
from hypothesis import strategies as st

from serving_runtime.shared.sampling import is_sampled


@given(st.text(), st.floats(0, 1), st.floats(0, 1))
def test_a_smaller_sample_is_a_part_of_a_larger_one(request_id: str, one: float, other: float) -> None:
    if is_sampled(request_id, min(one, other)):
        assert is_sampled(request_id, max(one, other))


def test_the_sample_is_as_large_as_its_share() -> None:
    sampled = sum(is_sampled(f"request-{number}", 0.2) for number in range(10_000))
    assert 1850 < sampled < 2150


def test_everything_and_nothing() -> None:
    assert all(is_sampled(str(number), 1) for number in range(1000))
    assert not any(is_sampled(str(number), 0) for number in range(1000))


def test_the_function_stays_what_it_is_because_servers_of_two_versions_must_agree() -> None:
    assert [number for number in range(40) if is_sampled(f"request-{number}", 0.1)] == [11, 27]
