"""`fairlead rollouts`: the exit code is the verdict."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from rich.console import Console

from fairlead_cli.commands import rollout_view

Fairlead = Callable[..., tuple[int, str, str]]


def rollout(phase: str = "Progressing", actual: int = 10, wanted: int = 10, **changes: Any) -> dict[str, Any]:
    made: dict[str, Any] = {
        "id": 7,
        "service": "default/digits",
        "from_revision": "digits-00001",
        "to_revision": "digits-00002",
        "from_version": "1",
        "to_version": "2",
        "policy": "careful",
        "strategy": "canary",
        "phase": phase,
        "attempt": 1,
        "step_index": 0,
        "steps": [{"weight": 10}, {"weight": 100}],
        "weight_wanted": wanted,
        "weight_actual": actual,
        "weight_seen_percent": 9.7,
        "seen_requests": 310,
        "reason": {"code": "AnalysisRunning", "message": "31 of 60 requests seen"},
        "verdict": "Running",
        "analysis_runs": [
            {
                "attempt": 1,
                "step_index": 0,
                "weight_percent": 10,
                "verdict": "Running",
                "message": "31 of 60 requests seen",
                "requests": {"canary": 31, "stable": 279},
                "seen_percent": 9.7,
                "measurements": [],
            }
        ],
        "started_at": "2026-01-01",
        "finished_at": None,
        "created_by": "ann",
    }
    return made | changes


def test_what_systems_outside_answered_is_a_table(fairlead: Fairlead, api: Any) -> None:
    asked = {"name": "tests", "when": "after", "step_index": 0, "tries": 3, "answer": "wait", "is_open": True}
    api.on("GET /rollouts/7", rollout(webhooks=[{**asked, "message": "60 of 90 tests done"}]))

    code, said, _ = fairlead("rollouts", "status", "7")

    assert code == 0
    for words in ("after step 1, 3 times", "wait", "60 of 90 tests done"):
        assert words in said


START = "POST /services/default/digits/rollouts"


GROUP = [{"header": "x-group", "anyOf": ["beta", "staff"]}, {"header": "x-region", "prefix": "eu-"}]
SAID = "x-group: beta or staff and x-region: eu-*"


@pytest.mark.parametrize(
    ("step", "given", "said"),
    [
        pytest.param({"weight": 10}, {}, "10 %", id="a weight"),
        pytest.param(
            {"weight": 0, "mirror": 20},
            {"mirror_wanted": 20, "mirror_actual": 20},
            "copies of 20 %",
            id="copies, though no shadow",
        ),
        pytest.param({"weight": 0, "match": GROUP}, {"match_wanted": GROUP, "match_actual": GROUP}, SAID, id="a group"),
        pytest.param(
            {"weight": 10, "match": GROUP},
            {"match_wanted": GROUP, "match_actual": GROUP},
            f"{SAID} and 10 % of the others",
            id="a group and a weight",
        ),
    ],
)
def test_what_the_new_version_gets_is_said_for_the_present_and_for_each_step(
    step: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    weight = step["weight"]
    shown = rollout(actual=weight, wanted=weight, steps=[step, {"weight": 100}], **given)
    assert rollout_view.line(shown) == f"Progressing, version 2 at {said}: 31 of 60 requests seen"
    assert said in rollout_view.as_text(shown)
    console = Console(record=True, width=200)
    console.print(rollout_view.live(shown))
    assert f"1  │ {said} " in console.export_text()


def test_start_sends_what_is_wanted(fairlead: Fairlead, api: Any) -> None:
    api.on(START, rollout("Pending", 0, 0), status=201)

    code, said, _ = fairlead("rollouts", "start", "digits", "--version", "@champion", "--policy", "careful")

    assert (code, "Pending" in said) == (0, True)
    assert api.seen[0].document == {"version": "@champion", "policy": "careful"}


ANALYSIS = {
    "alpha": 0.01,
    "traffic": "clients sent 30 requests a second over the last 100 s",
    "requests_per_second": 30.0,
    "steps": [
        {
            "step_index": 0,
            "weight_percent": 10,
            "min_requests": 100,
            "detections": [
                {"metric": "server_errors", "regression_percent": 5.0, "requests": 438, "seconds": 146.0, "message": ""}
            ],
            "warnings": ["minRequests is 100, fewer than it takes"],
        },
        {"step_index": 1, "weight_percent": 50, "min_requests": None, "detections": [], "warnings": []},
    ],
}


def test_a_dry_run_shows_whether_it_fits_on_the_nodes(fairlead: Fairlead, api: Any) -> None:
    room = {"fits": False, "pods": 2, "placed": 0, "message": "it does not fit: no node has room for 2 of digits-00002"}
    plan = {"outcome": "created", "message": "rollout by policy half", "contract": None, "analysis": None, "room": room}
    plan["warnings"] = ["no step compares answers"]
    api.on("POST /services/default/digits/rollouts?dry_run=true", plan)
    code, said, _ = fairlead("rollouts", "start", "digits", "--version", "2", "--dry-run")
    assert code == 0
    assert "Warning: no step compares answers." in said
    assert "Room on the nodes: it does not fit: no node has room for 2 of digits-00002." in said


def test_a_dry_run_shows_what_each_step_could_find_and_starts_nothing(fairlead: Fairlead, api: Any) -> None:
    plan = {"outcome": "created", "message": "rollout by policy careful", "contract": None, "analysis": ANALYSIS}
    api.on("POST /services/default/digits/rollouts?dry_run=true", plan)

    code, said, _ = fairlead("rollouts", "start", "digits", "--version", "2", "--dry-run", "--wait")

    assert (code, len(api.seen)) == (0, 1)
    assert "A good version is failed with a probability of at most 0.01; clients sent 30 requests a second" in said
    assert re.search(r"1\s+10 %\s+server_errors\s+5 %\s+438\s+146 s", said)
    assert "step 1: minRequests is 100, fewer than it takes" in said


def test_start_without_a_policy_leaves_it_to_the_service(fairlead: Fairlead, api: Any) -> None:
    api.on(START, rollout(), status=201)

    fairlead("rollouts", "start", "digits", "--version", "2")

    assert api.seen[0].document == {"version": "2"}


@pytest.mark.parametrize(
    ("phase", "code", "complaint"),
    [
        pytest.param("Healthy", 0, None, id="healthy is success"),
        pytest.param("Degraded", 3, "rollout 7 of default/digits ended Degraded: too many errors", id="rolled back"),
        pytest.param("Aborted", 6, "rollout 7 of default/digits ended Aborted: too many errors", id="aborted"),
    ],
)
def test_waiting_ends_as_the_rollout_does(
    fairlead: Fairlead, api: Any, phase: str, code: int, complaint: str | None
) -> None:
    ended = rollout(phase, 100, 100, reason={"code": "x", "message": "too many errors"})
    api.on(START, rollout("Pending"), status=201)
    api.on("GET /rollouts/7", rollout(), rollout("Paused"), ended)

    got, said, told = fairlead("rollouts", "start", "digits", "--version", "2", "--wait", "-o", "json")

    assert got == code
    assert json.loads(said)["phase"] == phase
    assert told.splitlines()[:2] == [
        "Progressing, version 2 at 10 %: 31 of 60 requests seen",
        "Paused, version 2 at 10 %: 31 of 60 requests seen",
    ]
    assert told.splitlines()[3:] == ([complaint] if complaint else [])


def test_waiting_too_long_ends_with_4(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /rollouts/7", rollout("Paused"))

    code, _, told = fairlead("rollouts", "status", "7", "--wait", "--timeout", "0")

    assert code == 4
    assert told.splitlines()[-1].startswith("the end of rollout 7 was not there after 0 s")


@pytest.mark.parametrize("verb", ["promote", "abort", "retry"])
def test_a_decision_on_a_services_newest_rollout(fairlead: Fairlead, api: Any, verb: str) -> None:
    api.on("GET /services/team/digits", {"rollout": rollout()})
    api.on(f"POST /rollouts/7/{verb}", rollout("Aborted"))

    code, said, _ = fairlead("rollouts", verb, "team/digits")

    assert (code, "Aborted" in said) == (0, True)


def test_a_service_without_rollouts_says_so(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /services/default/digits", {"rollout": None})

    code, _, complained = fairlead("rollouts", "status", "digits")

    assert (code, complained.split(";")[0]) == (1, "service default/digits has had no rollout")


def test_status_shows_the_evidence(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /rollouts/7", rollout())

    _, said, _ = fairlead("rollouts", "status", "7")

    assert said.splitlines()[-1].split() == [
        "1",
        "1",
        "10",
        "%",
        "9.7",
        "%",
        "310",
        "Running",
        "31",
        "of",
        "60",
        "requests",
        "seen",
    ]


def test_a_weight_on_its_way_is_shown_as_such() -> None:
    assert rollout_view.line(rollout(actual=10, wanted=25)).startswith("Progressing, version 2 at 10 % of 25 %: ")


def test_the_live_table_marks_the_step() -> None:
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(rollout_view.live(rollout()))
    lines = console.export_text().splitlines()
    console.file.close()

    assert any(line.split()[:9] == ["│", ">", "1", "│", "10", "%", "│", "9.7", "%"] for line in lines)
    assert not any("> 2" in line for line in lines)


def test_the_live_table_says_of_a_step_that_ended_undecided_that_it_did() -> None:
    seen = rollout("Aborted")
    seen["analysis_runs"][0]["finished_at"] = "2026-01-01T00:00:00Z"
    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: PTH123, SIM115
    console.print(rollout_view.live(seen))
    said = console.export_text()
    console.file.close()
    assert "Undecided" in said
    assert "Running" not in said


UNDO = "POST /services/default/digits/rollback"


@pytest.mark.parametrize(
    ("options", "body"),
    [
        pytest.param((), {}, id="the one before"),
        pytest.param(("--to-revision", "digits-00001"), {"revision": "digits-00001"}, id="a named one"),
    ],
)
def test_undo_goes_back(fairlead: Fairlead, api: Any, options: tuple[str, ...], body: dict[str, str]) -> None:
    api.on(UNDO, rollout("Pending", 0, 0), status=201)

    code, said, _ = fairlead("rollouts", "undo", "digits", *options)

    assert (code, "Pending" in said) == (0, True)
    assert api.seen[0].document == body


def test_a_refused_undo_says_why(fairlead: Fairlead, api: Any) -> None:
    api.refuse(UNDO, 409, "digits-00001 is live already, so there is nothing to go back to")

    code, _, told = fairlead("rollouts", "undo", "digits")

    assert (code, "live already" in told) == (1, True)


WAITS = {
    "condition": "AnalysisRunning",
    "evidence": "31 of 60 requests seen",
    "sample_size": 31,
    "changes_when": "the canary has had 29 requests more",
    "since": "2026-01-01T12:00:00Z",
}


def test_status_says_why_it_waits_on_what_evidence_and_since_when(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /rollouts/7", rollout(waits=WAITS))

    _, said, _ = fairlead("rollouts", "status", "7")

    assert "waits for     AnalysisRunning" in said
    assert re.search(r"since +2026-01-01T12:00:00Z \(\d+ days ago\)", said)
    assert "sample        31 requests" in said
    assert "changes when  the canary has had 29 requests more" in said
    assert said.count("31 of 60 requests seen") == 2, "as evidence and in the table, not as a reason beside it"


def test_what_is_over_waits_for_nothing(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /rollouts/7", rollout("Healthy", waits=None))

    _, said, _ = fairlead("rollouts", "status", "7")

    assert "waits for" not in said
    assert "reason" in said


def test_status_tells_attempts_and_steps_without_an_analysis_apart(fairlead: Fairlead, api: Any) -> None:
    (run,) = rollout()["analysis_runs"]
    first = {**run, "verdict": "Failed", "has_gate": True}
    again = {**run, "attempt": 2, "verdict": "Successful", "has_gate": False, "message": "no analysis at this step"}
    api.on("GET /rollouts/7", rollout(attempt=2, analysis_runs=[first, again]))

    _, said, _ = fairlead("rollouts", "status", "7")

    rows = [line.split() for line in said.splitlines() if line[:1] in ("1", "2")]
    assert [row[:2] for row in rows] == [["1", "1"], ["2", "1"]]
    assert "Failed" in rows[0]
    assert "Successful" not in rows[1]


def test_the_live_table_shows_the_present_attempt_alone() -> None:
    (run,) = rollout()["analysis_runs"]
    runs = [{**run, "step_index": 1, "verdict": "Failed"}, {**run, "attempt": 2}]
    console = Console(width=200, record=True)
    console.print(rollout_view.live(rollout(attempt=2, analysis_runs=runs)))
    assert "Failed" not in console.export_text()
