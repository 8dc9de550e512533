"""What a person at a terminal sees while a command waits, and what a CI job's log gets instead."""

import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ENDED: dict[str, Any] = {
    "id": 7,
    "service": "default/digits",
    "from_revision": "digits-00001",
    "to_revision": "digits-00002",
    "from_version": 1,
    "to_version": 2,
    "policy": "careful",
    "strategy": "canary",
    "phase": "Healthy",
    "step_index": 0,
    "steps": [{"weight": 10}],
    "weight_wanted": 100,
    "weight_actual": 100,
    "weight_seen_percent": None,
    "seen_requests": 0,
    "reason": {"code": "x", "message": "all steps passed"},
    "analysis_runs": [],
    "started_at": "t",
    "finished_at": "t",
    "created_by": "ann",
}
BEGUN = {**ENDED, "phase": "Progressing", "weight_wanted": 10, "weight_actual": 10}


def waited(api: Any, stderr: int) -> "subprocess.CompletedProcess[bytes]":
    api.on("GET /rollouts/7", BEGUN, BEGUN, ENDED)
    command = [sys.executable, "-m", "fairlead_cli", "rollouts", "status", "7", "--wait", "--url", api.url]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=stderr, env=environment, timeout=60, check=True)


def test_a_terminal_gets_a_table_that_is_drawn_over_and_over(api: Any, at_home: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        waited(api, theirs)
        os.set_blocking(ours, False)
        drawn = os.read(ours, 2**20).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert "> 1" in drawn
    assert "\x1b[1A" in drawn, "the cursor goes up to draw again"


def test_a_log_gets_one_plain_line_for_each_change(api: Any, at_home: Path, tmp_path: Path) -> None:
    with (tmp_path / "log").open("wb") as log:
        waited(api, log.fileno())
    assert (tmp_path / "log").read_text().splitlines() == [
        "Progressing, version 2 at 10 %: all steps passed",
        "Healthy, version 2 at 100 %: all steps passed",
    ]


@pytest.mark.parametrize("colours", ["", "1"])
def test_answers_have_no_colours_that_a_program_would_stumble_over(
    api: Any, at_home: Path, colours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", colours)
    assert b"\x1b" not in waited(api, subprocess.DEVNULL).stdout
