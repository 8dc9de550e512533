import pytest

from integrations.clusters.local.agent.timing import Timing


@pytest.mark.parametrize(
    ("failures", "seconds"),
    [(1, 0.25), (2, 0.5), (3, 1.0), (7, 16.0), (8, 30.0), (10_000, 30.0)],
)
def test_backoff_doubles_up_to_a_limit(failures, seconds):
    assert Timing(backoff_first_s=0.25, backoff_most_s=30.0).backoff_s(failures) == seconds
