import json

import pytest

from deployments.domain.analysis.evidence import ledger
from deployments.domain.analysis.evidence.blocks import Block, Mark, Tally, close
from deployments.domain.analysis.gate import questions_of
from deployments.domain.policy import Gate

QUESTIONS = questions_of(Gate())


@pytest.mark.parametrize(
    ("canary", "stable", "seconds", "is_closed"),
    [
        pytest.param(4, 20, 2.0, True, id="old enough, with requests enough"),
        pytest.param(4, 20, 1.0, False, id="too young"),
        pytest.param(3, 20, 60.0, False, id="too few of the canary, however long it takes"),
        pytest.param(4, 19, 9.9, False, id="too few of stable"),
        pytest.param(4, 19, 10.0, True, id="too few of stable, but for long enough"),
        pytest.param(400, 0, 10.0, True, id="stable gets none at weight 100"),
    ],
)
def test_when_a_block_closes(canary: int, stable: int, seconds: float, is_closed: bool) -> None:
    block = close(Mark(100.0, Tally(10), Tally(50)), Tally(10 + canary), Tally(50 + stable), 100.0 + seconds)
    assert (block is not None) is is_closed
    assert block is None or block == Block(Tally(canary), Tally(stable), pytest.approx(seconds))


@pytest.mark.parametrize("failed", [0, 4], ids=["none fails", "all fail"])
def test_how_requests_ended_does_not_decide_when_a_block_closes(failed: int) -> None:
    assert close(Mark(0.0), Tally(4, failed, failed, 4, failed), Tally(20), 2.0) is not None
    assert close(Mark(0.0), Tally(3, failed, failed, 3, failed), Tally(20), 2.0) is None


def test_every_request_is_in_one_block() -> None:
    known, sums = ledger.begin(0.0), [1, 3, 8, 9, 11, 16, 40]
    marks = []
    for tick, total in enumerate(sums, start=1):
        known = ledger.carry_on(known, QUESTIONS, Tally(total), Tally(9 * total), 2.0 * tick)
        marks.append(known.mark.canary.requests)
    assert marks == [0, 0, 8, 8, 8, 16, 40]


def test_the_same_tick_twice_from_the_same_row_is_the_same() -> None:
    """A tick that was not recorded is made again from what is recorded."""
    row = ledger.ledger_json(ledger.carry_on(ledger.begin(0.0), QUESTIONS, Tally(8, 0, 4), Tally(72), 2.0))
    rows = []
    for _ in range(2):
        known = ledger.stored_ledger(json.loads(json.dumps(row)))
        assert known is not None
        known = ledger.carry_on(known, QUESTIONS, Tally(20, 0, 12), Tally(180), 4.0)
        rows.append(ledger.ledger_json(known))
    assert rows[0] == rows[1] != row


def test_a_new_step_goes_on_with_the_evidence_and_begins_its_sums_anew() -> None:
    known = ledger.carry_on(ledger.begin(0.0), QUESTIONS, Tally(8, 0, 8), Tally(72), 2.0)
    assert known.log_capital("server_errors") > 1
    after = ledger.begin(10.0, known)
    assert after.log_capital("server_errors") == known.log_capital("server_errors")
    assert after.mark == Mark(10.0)
    assert ledger.begin(10.0).log_capital("server_errors") == 0, "a retry knows nothing of it"


def test_a_row_from_before_there_was_evidence_has_none() -> None:
    assert ledger.stored_ledger({}) is None
