"""What of a time counts as not observed, by the periods that a cluster keeps."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from clusters.domain.unseen import PLANNED, Period, periods_json, stored, unseen, with_gap

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
NIGHT = timedelta(hours=8)
seconds = st.integers(0, 100_000).map(lambda each: timedelta(seconds=each))


def test_a_night_is_passed_over_but_for_its_planned_part() -> None:
    periods = with_gap([], observed_at=NOW - NIGHT, now=NOW)
    assert periods == [(NOW - NIGHT + PLANNED, NOW)]
    for now in (NOW, NOW + timedelta(hours=1)):
        found = unseen(periods, observed_at=now, since=NOW - NIGHT - timedelta(seconds=5), now=now)
        assert found == NIGHT - PLANNED


def test_before_its_cluster_is_observed_again_a_service_passes_over_the_same() -> None:
    assert unseen([], observed_at=NOW - NIGHT, since=NOW - NIGHT, now=NOW) == NIGHT - PLANNED
    assert unseen([], observed_at=None, since=NOW - NIGHT, now=NOW) == NIGHT - PLANNED


@given(st.lists(seconds, max_size=80), seconds)
def test_a_service_passes_over_at_most_what_its_cluster_was_not_observed(gaps: list[timedelta], age: timedelta) -> None:
    periods: list[Period] = []
    at = NOW
    for gap in gaps:
        periods = with_gap(periods, observed_at=at, now=at + gap)
        at += gap
    since = at - age
    found = unseen(periods, observed_at=at, since=since, now=at)
    assert found == sum((max(timedelta(0), end - max(begin, since)) for begin, end in periods), timedelta(0))
    assert timedelta(0) <= found <= max(timedelta(0), age)
    if all(gap <= PLANNED for gap in gaps):
        assert (periods, found) == ([], timedelta(0))
    assert stored(periods_json(periods)) == periods
    assert len(periods) <= 50
