"""What is kept of what a failing process said."""

import json
from dataclasses import asdict

import pytest

from integrations.clusters.base import Failure, FailureReason, ReplicaEvent, failure_from_json, hidden, last_lines
from integrations.clusters.base.failures import MAX_LOG_BYTES, MAX_LOG_LINES, reason_of_exit


@pytest.mark.parametrize(
    ("env", "text", "shown"),
    [
        pytest.param({"API_KEY": "abc"}, "key abc refused", "key $(API_KEY) refused", id="a secret by its name"),
        pytest.param({"URL": "db://me:pw@host"}, "no db://me:pw@host", "no $(URL)", id="any long value"),
        pytest.param({"LEVEL": "info"}, "info: up", "info: up", id="a short word stays"),
        pytest.param({"TOKEN": "s1"}, "s1 s10", "s1 s10", id="what is no secret for its shortness"),
        pytest.param({"A": "secret-1", "B": "secret-1-more"}, "secret-1-more", "$(B)", id="the longest first"),
        pytest.param({"PEM": "begin\nabcdefgh\nend"}, "read abcdefgh", "read $(PEM)", id="a line of several"),
        pytest.param({"EMPTY": "", "BLANK_KEY": "     "}, "a     b", "a     b", id="nothing"),
    ],
)
def test_values_of_the_environment_are_shown_by_their_names(env: dict[str, str], text: str, shown: str) -> None:
    assert hidden(text, env) == shown


def test_the_end_of_a_log_is_kept_within_bounds_and_printable() -> None:
    text = "".join(f"line {number}\n\n" for number in range(500)) + "\x1b[31mred\x00\ttab\n"
    kept = last_lines(text, {})
    assert len(kept) == MAX_LOG_LINES
    assert kept[-2:] == ("line 499", "?[31mred? tab")


def test_a_log_that_is_cut_does_not_begin_in_the_midst_of_a_secret() -> None:
    secret = "s3cr3t" * 10
    text = (secret + "x" * MAX_LOG_BYTES)[20 : 20 + MAX_LOG_BYTES - 6] + "\nlast\n"
    assert last_lines(text, {"TOKEN": secret}) == ("last",)


def test_long_lines_are_cut() -> None:
    (line,) = last_lines("y" * 1000, {})
    assert (len(line), line[-4:]) == (300, "y...")


def test_a_failure_survives_json() -> None:
    failure = Failure(
        FailureReason.OUT_OF_MEMORY,
        "it was killed",
        12.5,
        137,
        "digits-00001-abc",
        "runtime",
        (ReplicaEvent(12.0, "BackOff", "again", 3),),
        ("one", "two"),
    )
    assert failure_from_json(json.loads(json.dumps({**asdict(failure), "later": 1}))) == failure


@pytest.mark.parametrize(
    ("code", "reason"), [(1, "ModelLoadFailed"), (2, "ModelLoadFailed"), (139, "RuntimeUnhealthy")]
)
def test_a_runtime_that_cannot_serve_what_it_was_given_ends_with_1_or_2(code: int, reason: str) -> None:
    assert reason_of_exit(code) == reason
