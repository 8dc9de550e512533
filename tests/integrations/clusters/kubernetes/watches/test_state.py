"""What one watch makes of what an API server says, in the order in which such things come."""

from typing import Any

import pytest

from integrations.clusters.kubernetes.watches.state import (
    LOST_AFTER_S,
    RESYNC_S,
    Watch,
    ended,
    failed,
    heard,
    listed,
    opened,
    wait_s,
)

NOW = 100.0
GONE = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old resource version"}}
BOOKMARK = {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "90"}}}


@pytest.fixture
def watch() -> Watch:
    return listed(Watch(), "5", NOW)


def test_it_lists_first_and_then_streams_from_there(watch: Watch) -> None:
    assert Watch().must_list(NOW)
    assert (watch.must_list(NOW), watch.resource_version) == (False, "5")


@pytest.mark.parametrize("kind", ["ADDED", "MODIFIED", "DELETED", "BOOKMARK"])
def test_each_event_is_where_it_goes_on_after_a_break(kind: str, watch: Watch) -> None:
    event: dict[str, Any] = {"type": kind, "object": {"metadata": {"resourceVersion": "7"}}}
    watch = failed(heard(watch, event, NOW), "the connection broke", NOW)
    assert (watch.must_list(NOW), watch.resource_version, watch.failures) == (False, "7", 1)


def test_a_history_that_is_gone_is_listed_again(watch: Watch) -> None:
    watch = heard(watch, GONE, NOW)
    assert (watch.must_list(NOW), watch.problem) == (True, "too old resource version")


def test_everything_is_listed_again_once_in_a_while(watch: Watch) -> None:
    assert not watch.must_list(NOW + RESYNC_S - 1)
    assert watch.must_list(NOW + RESYNC_S)


def test_it_is_lost_when_it_was_away_for_some_seconds_and_found_when_it_streams_again(watch: Watch) -> None:
    away = failed(failed(watch, "away", NOW), "away", NOW + 3)
    assert not away.is_lost(NOW + LOST_AFTER_S - 0.1)
    assert away.is_lost(NOW + LOST_AFTER_S)
    assert (away.must_list(NOW + LOST_AFTER_S - 0.1), away.must_list(NOW + LOST_AFTER_S)) == (False, True)
    assert not opened(away).is_lost(NOW + 1000)


def test_each_failure_is_waited_for_longer_up_to_a_bound_and_never_all_at_once(watch: Watch) -> None:
    waits = []
    for _ in range(12):
        watch = failed(watch, "away", NOW)
        waits.append(wait_s(watch, 1.0))
        assert wait_s(watch, 0.0) == waits[-1] / 2
    assert waits[:4] == [0.5, 1.0, 2.0, 4.0]
    assert waits[-1] == 30.0


def test_a_stream_that_worked_or_ended_in_peace_is_not_waited_for(watch: Watch) -> None:
    away = failed(watch, "away", NOW)
    assert wait_s(ended(away), 1.0) == 0.0
    assert wait_s(heard(away, BOOKMARK, NOW), 1.0) == 0.0


def test_a_stream_that_is_gone_each_time_is_requested_less_and_less_often(watch: Watch) -> None:
    for number in range(1, 4):
        watch = listed(heard(watch, GONE, NOW), "60", NOW)
        assert watch.failures == number
