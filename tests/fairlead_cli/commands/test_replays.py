"""`fairlead services replay` and `services replays`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Fairlead = Callable[..., tuple[int, str, str]]
WHERE = "/services/default/digits/replays"
PENDING = {
    "id": 6,
    "service": "default/digits",
    "recording": 5,
    "version": 2,
    "status": "PENDING",
    "reason": "",
    "done": 0,
    "total": 300,
    "comparison": None,
    "created_at": "2026-01-01",
    "created_by": "ann",
}


def ended(verdict: str, agreement: float) -> dict[str, Any]:
    worst = {"request_id": "r-1", "at": "2026-01-01", "message": "label: 3 where 7 was recorded"}
    output = {"name": "label", "datatype": "INT64", "kinds": {"Equal": 299, "Differs": 1}, "absolute": None}
    comparison = {
        "agreement_percent": agreement,
        "measurement": {"verdict": verdict, "message": f"the answers agree in {agreement} %"},
        "outputs": [output],
        "worst": [] if verdict == "Successful" else [worst],
    }
    return {**PENDING, "status": "DONE", "done": 300, "comparison": comparison}


@pytest.mark.parametrize(("given", "asked"), [((), {}), (("--recording", "5"), {"recording": 5})])
def test_the_newest_recording_is_meant_where_none_is_named(
    fairlead: Fairlead, api: Any, given: tuple[str, ...], asked: dict[str, Any]
) -> None:
    api.on(f"POST {WHERE}", PENDING, status=201)
    code, said, _ = fairlead("services", "replay", "digits", "--version", "2", *given)
    assert (code, api.seen[0].document) == (0, {"version": "2", **asked})
    assert "0 of 300" in said


def test_what_is_asked_of_the_answers_comes_from_a_file(fairlead: Fairlead, api: Any, tmp_path: Path) -> None:
    file = tmp_path / "terms.yaml"
    file.write_text("minAgreementPercent: 95")
    api.on(f"POST {WHERE}", PENDING, status=201)
    assert fairlead("services", "replay", "digits", "--version", "2", "--comparison", str(file))[0] == 0
    assert api.seen[0].document == {"version": "2", "comparison": {"minAgreementPercent": 95}}


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [
        (ended("Successful", 100.0), 0, ""),
        (ended("Failed", 80.0), 3, "version 2 does not answer as was recorded: the answers agree in 80.0 %"),
        ({**PENDING, "status": "FAILED", "reason": "no such operator"}, 3, "no such operator"),
    ],
)
def test_waiting_ends_with_what_was_found(
    fairlead: Fairlead, api: Any, end: dict[str, Any], code: int, told: str
) -> None:
    api.on(f"POST {WHERE}", PENDING, status=201)
    api.on(f"GET {WHERE}/6", end)
    ended_with, said, err = fairlead("services", "replay", "digits", "--version", "2", "--wait")
    assert ended_with == code
    assert told in err
    assert ("label: 3 where 7 was recorded" in said) is (code == 3 and end["comparison"] is not None)


def test_replays_are_listed(fairlead: Fairlead, api: Any) -> None:
    api.on(f"GET {WHERE}", {"next": None, "results": [PENDING, {**ended("Failed", 80.0), "recording": None}]})
    code, said, _ = fairlead("services", "replays", "digits")
    assert code == 0
    assert "80 %" in said
    assert "deleted" in said


def test_a_recording_that_is_no_number_is_refused(fairlead: Fairlead, api: Any) -> None:
    code, _, told = fairlead("services", "replay", "digits", "--version", "2", "--recording", "last")
    assert code == 2
    assert "expected a number, or latest" in told
    assert api.seen == []
