"""The summary says whether it held, and shows it."""

import io
import json
from pathlib import Path
from typing import Any

from rich.console import Console

from fairlead_cli.demo import report
from fairlead_cli.demo.evaluation import Window
from fairlead_cli.demo.requests import Request
from fairlead_cli.demo.screen import Screen
from fairlead_cli.demo.story import Chapter

NAMES = {1: "digits-00001", 2: "digits-00002", 3: "digits-00003", 4: "digits-00004"}

LABELS = {"sent": 1120, "unsent": 0, "failures": 1, "message": "503", "joined": 1120, "waiting": 0, "unmatched": 0}


def chapter(start: int, end: int, phase: str, weight: int, windows: list[Window], why: str = "") -> Chapter:
    rollout: dict[str, Any] = {
        "id": end,
        "from_revision": NAMES[start],
        "to_revision": NAMES[end],
        "from_version": str(start),
        "to_version": str(end),
        "phase": phase,
        "weight_actual": weight,
        "reason": {"code": "Done", "message": why or f"it is {phase}"},
        "analysis_runs": [{"measurements": [{"metric": "quality:accuracy", "verdict": "Failed"}]}],
        "started_at": "a",
        "finished_at": "b",
    }
    return Chapter(end, rollout, windows)


def sent(count: int, version: int, at: float, ok: bool = True) -> list[Request]:
    label = 1 if ok else None
    return [Request(at, at + 0.001, "grpc", NAMES[version], ok, "" if ok else "500 oops", label, 1)] * count


def built(v2_in_window: int = 250) -> dict[str, Any]:
    window = Window(2, NAMES[2], 25, 0.0, 10.0)
    requests = sent(750, 1, 5.0) + sent(v2_in_window, 2, 5.0) + sent(100, 2, 20.0) + sent(9, 3, 30.0, ok=False)
    requests += sent(20, 4, 40.0)
    return report.build(
        requests=requests,
        good=chapter(1, 2, "Healthy", 100, [window]),
        failing=chapter(2, 3, "Degraded", 0, []),
        mistaken=chapter(2, 4, "Degraded", 0, [], "wrong by 40 labels"),
        labels={**LABELS, "received": 1120},
        service={"phase": "Ready", "revisions": [{"name": NAMES[2], "weight_actual": 100}]},
        training={"images": 1, "trained_on": 1, "held_out": 1, "versions": [], "example": []},
        seconds=60.04,
    )


def test_a_report_of_what_held() -> None:
    made = json.loads(json.dumps(built()))

    assert made["ok"] is True
    assert (made["schema"], made["seconds"]) == ("fairlead.demo-report/v1", 60.0)
    assert made["requests"] == {"sent": 1129, "failed": 9}
    assert made["labels"] == LABELS
    assert [(row["version"], row["requests"], row["failed"]) for row in made["revisions"]] == [
        (1, 750, 0),
        (2, 350, 0),
        (3, 9, 9),
        (4, 20, 0),
    ]
    assert made["steps"][0]["seen_percent"] == 25.0
    assert [(each["to_version"], each["phase"]) for each in made["rollouts"]] == [
        ("2", "Healthy"),
        ("3", "Degraded"),
        ("4", "Degraded"),
    ]
    assert made["rollouts"][2]["reason"] == "wrong by 40 labels"


def test_a_report_of_what_did_not_hold() -> None:
    made = built(v2_in_window=750)

    assert made["ok"] is False
    assert [check["name"] for check in made["checks"] if not check["ok"]] == ["version 2 at 25 %"]


def test_it_is_readable_without_a_terminal(tmp_path: Path) -> None:
    output = io.StringIO()
    report.show(built(v2_in_window=750), Screen(Console(file=output)))

    text = output.getvalue()
    assert "\x1b" not in text
    assert "1629 requests with real images in 60 s, 9 failed" in text
    assert "1120 labels seconds after their answers, 1120 joined with them" in text
    assert "  FAILED version 2 at 25 %: seen 50.0 % of 1500 requests, tolerance 5.2" in text.splitlines()
    assert any(line.split()[:4] == ["2", "->", "3", "Degraded"] for line in text.splitlines())
