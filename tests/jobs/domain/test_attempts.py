"""The states of work that a worker does, without a clock."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from jobs.domain.attempts import MAX_ATTEMPTS, AttemptState, Status, begin, broke_off, done, failed, may_begin

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(seconds=20)
NEW = AttemptState(Status.PENDING, 0, "", NOW)


def test_one_worker_has_it_until_its_lease_is_over() -> None:
    begun = begin(NEW, NOW, LEASE)
    assert not may_begin(begun, NOW + LEASE - timedelta(seconds=1))
    assert may_begin(begun, NOW + LEASE)


def test_one_that_takes_its_worker_down_is_given_up_in_the_end() -> None:
    state = NEW
    for _ in range(MAX_ATTEMPTS):
        state = begin(replace(state, next_try_at=NOW), NOW, LEASE)
        assert state.status is Status.PENDING
    given_up = begin(state, NOW, LEASE)
    assert (given_up.status, given_up.next_try_at) == (Status.FAILED, None)
    assert given_up.reason == "it broke off 3 times, the last time because its worker ended each time"


def test_one_that_broke_off_is_made_again_at_once_and_says_why() -> None:
    again = broke_off(begin(NEW, NOW, LEASE), "it hung", NOW)
    assert may_begin(again, NOW)
    assert again.reason == "it hung"


def test_the_ends_are_ends() -> None:
    for end in (done(begin(NEW, NOW, LEASE)), failed(NEW, "no such model")):
        assert not may_begin(end, NOW + timedelta(days=1))
