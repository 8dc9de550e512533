from datetime import UTC, datetime, timedelta

import pytest

from registry.domain.version_lifecycle import (
    MAX_ATTEMPTS,
    Accepted,
    CheckState,
    Outcome,
    Refused,
    Status,
    Unchecked,
    again,
    begin,
    crashed,
    end,
    may_begin,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LEASE = timedelta(minutes=2)
SECOND = timedelta(seconds=1)
NEW = CheckState(Status.PENDING, 0, "", NOW)
ACCEPTED = Accepted({"inputs": [], "outputs": []}, "onnxruntime_onnx")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(NEW, True, id="a new version is due at once"),
        pytest.param(CheckState(Status.PENDING, 1, "", NOW + SECOND), False, id="not before its time"),
        pytest.param(CheckState(Status.PENDING, 1, "", NOW - SECOND), True, id="after its time"),
        pytest.param(CheckState(Status.READY, 1, "", None), False, id="a READY one is never checked again"),
        pytest.param(CheckState(Status.REJECTED, 1, "no", None), False, id="nor a REJECTED one"),
    ],
)
def test_may_begin(state: CheckState, expected: bool) -> None:
    assert may_begin(state, NOW) is expected


def test_begin_counts_the_attempt_and_keeps_others_away_for_the_lease() -> None:
    begun = begin(NEW, NOW, LEASE)
    assert begun == CheckState(Status.PENDING, 1, "", NOW + LEASE)
    assert not may_begin(begun, NOW + LEASE - SECOND)
    assert may_begin(begun, NOW + LEASE)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(ACCEPTED, CheckState(Status.READY, 1, "", None), id="accepted: READY"),
        pytest.param(
            Refused("opset 99 is not supported"),
            CheckState(Status.REJECTED, 1, "opset 99 is not supported", None),
            id="refused: REJECTED with the runtime's sentence",
        ),
        pytest.param(
            Unchecked("no process could be started"),
            CheckState(Status.PENDING, 1, "no process could be started", NOW + timedelta(seconds=5)),
            id="not checked: again in 5 s, the reason is shown meanwhile",
        ),
    ],
)
def test_end(outcome: Outcome, expected: CheckState) -> None:
    assert end(begin(NEW, NOW, LEASE), outcome, NOW) == expected


@pytest.mark.parametrize("final", [CheckState(Status.READY, 1, "", None), CheckState(Status.REJECTED, 1, "no", None)])
@pytest.mark.parametrize("outcome", [ACCEPTED, Refused("x"), Unchecked("y")])
def test_a_final_state_stays(final: CheckState, outcome: Outcome) -> None:
    assert end(final, outcome, NOW) is final


def test_waits_longer_each_time_and_gives_up_with_the_last_reason() -> None:
    state, waits, now = NEW, [], NOW
    while state.status is Status.PENDING:
        state = end(begin(state, now, LEASE), Unchecked("the inspect did not finish within 120 s."), now)
        if state.next_check_at is not None:
            waits.append((state.next_check_at - now).total_seconds())
            now = state.next_check_at
    assert waits == [5, 10]
    assert state.status is Status.REJECTED
    assert state.reason == (
        f"the model could not be checked in {MAX_ATTEMPTS} attempts, the last time because the inspect did not finish "
        "within 120 s; push the same files again, or run `fairlead versions recheck`, to have it checked again"
    )


def test_checks_that_begin_and_never_end_are_given_up_too() -> None:
    state, now, begun = NEW, NOW, 0
    while state.status is Status.PENDING:
        state = begin(state, now, LEASE)
        begun += state.status is Status.PENDING
        now += LEASE
    assert begun == MAX_ATTEMPTS
    assert state.status is Status.REJECTED
    assert "the check began and did not end" in state.reason


def test_a_check_that_ends_its_worker_is_parked_longer_each_time_and_rejected_at_last() -> None:
    state, now, waits = NEW, NOW, []
    while state.status is Status.PENDING:
        state = crashed(begin(state, now, LEASE), now)
        if state.next_check_at is not None:
            waits.append((state.next_check_at - now).total_seconds())
            now = state.next_check_at
    assert waits == [30, 60]
    assert (state.status, state.attempts, state.of_installation) == (Status.REJECTED, MAX_ATTEMPTS, False)
    assert "it is parked, so that it holds up no other check" in state.reason


def test_what_the_installation_lacks_is_said_and_can_be_checked_again() -> None:
    needs = "backend 'lightgbm' needs the package lightgbm, which is not installed"
    state = end(begin(NEW, NOW, LEASE), Refused(needs, of_installation=True), NOW)
    assert (state.status, state.of_installation) == (Status.REJECTED, True)
    assert state.reason.startswith(f"{needs}; this installation lacks that, the model may be well; ")
    assert "fairlead versions recheck" in state.reason
    assert may_begin(again(NOW), NOW)
    assert end(begin(again(NOW), NOW, LEASE), ACCEPTED, NOW) == CheckState(Status.READY, 1, "", None)
