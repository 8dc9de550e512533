"""`fairlead models tune`, `tunings` and `stop-tuning`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fairlead_cli._support.answers import TUNING

Fairlead = Callable[..., tuple[int, str, str]]
WHERE = "/models/m/versions/1/tunings"
ASKED = ("models", "tune", "m", "--version", "1", "--max-latency-p99-ms", "5")


def point(p99_ms: float, per_s: float, batch: int) -> dict[str, Any]:
    return {
        "instances": 1,
        "batch_size": batch,
        "queue_delay_us": 0,
        "intra_op_threads": 1,
        "concurrency": 8,
        "requests_per_s": per_s,
        "p50_ms": p99_ms / 2,
        "p99_ms": p99_ms,
        "repeats": 3,
    }


CHOSEN = {**point(4.0, 2000, 16), "config": {"max_batch_size": 16, "dynamic_batching": {}}}
REPORT = {
    "frontier": [point(2.0, 1000, 4), point(4.0, 2000, 16), point(9.0, 2500, 32)],
    "chosen": CHOSEN,
    "baseline": point(3.0, 900, 8),
    "conclusion": "Chosen: 2,000 requests a second.",
    "reason": "",
}
DONE = {**TUNING, "status": "DONE", "report": REPORT, "plot": "<svg/>"}


def test_what_is_asked_for_is_sent(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}", TUNING, status=202)
    more = ("--service", "s", "--budget", "2m", "--shape", "a:3x4", "--rows", "2", "--max-instances", "3", "--no-wait")
    assert fairlead(*ASKED, *more)[0] == 0
    assert api.seen[0].document == {
        "max_latency_p99_ms": 5.0,
        "service": "default/s",
        "budget_s": 120,
        "shapes": {"a": [3, 4]},
        "rows": 2,
        "max_instances": 3,
    }


def test_the_frontier_is_a_table_and_files_get_the_rest(fairlead: Fairlead, api: Any, tmp_path: Path) -> None:
    api.on(f"POST {WHERE}", TUNING, status=202)
    api.on(f"GET {WHERE}/5", DONE)
    code, said, _ = fairlead(*ASKED, "--plot", str(tmp_path / "p.svg"), "--report", str(tmp_path / "r.json"))
    assert code == 0
    lines = said.splitlines()
    assert [line.split()[2] for line in lines[1:5]] == ["1,000", "900", "2,000", "2,500"]
    assert lines[2].endswith("as it is")
    assert lines[3].endswith("chosen")
    assert "Chosen: 2,000 requests a second." in said
    assert "max_batch_size: 16" in said
    assert (tmp_path / "p.svg").read_text() == "<svg/>"
    assert json.loads((tmp_path / "r.json").read_text()) == REPORT


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ({**TUNING, "status": "FAILED", "reason": "it is an ensemble"}, "m version 1 was not tuned: it is an ensemble"),
        (
            {**DONE, "report": {**REPORT, "chosen": None, "reason": "no setting keeps p99 under 5 ms"}},
            "no setting keeps",
        ),
    ],
)
def test_an_end_without_a_configuration_is_told_and_3(
    fairlead: Fairlead, api: Any, end: dict[str, Any], told: str
) -> None:
    api.on(f"POST {WHERE}", TUNING, status=202)
    api.on(f"GET {WHERE}/5", end)
    code, _, err = fairlead(*ASKED)
    assert code == 3
    assert told in err


def test_what_was_chosen_is_applied(fairlead: Fairlead, api: Any) -> None:
    api.on(f"POST {WHERE}", TUNING, status=202)
    api.on(f"GET {WHERE}/5", DONE)
    api.on(f"POST {WHERE}/5/apply", {"namespace": "default", "name": "s"})
    code, _, err = fairlead(*ASKED, "--service", "s", "--apply")
    assert code == 0
    assert "service default/s has a new revision" in err


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--apply",), "name it by --service"),
        (("--no-wait", "--plot", "p.svg"), "leave --no-wait out"),
        (("--budget", "5"), "expected such as 90s, 5m or 1h"),
        (("--shape", "x:0"), "is not INPUT:DIMS"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_asked(
    fairlead: Fairlead, api: Any, more: tuple[str, ...], told: str
) -> None:
    try:
        code, _, err = fairlead(*ASKED, *more)
    except SystemExit:
        return
    assert code in (1, 2)
    assert told in err
    assert api.seen == []


def test_tunings_are_listed_and_stopped(fairlead: Fairlead, api: Any) -> None:
    api.on(f"GET {WHERE}", {"next": None, "results": [DONE, {**TUNING, "progress": {"spent": 0.25, "best": CHOSEN}}]})
    code, said, _ = fairlead("models", "tunings", "m", "--version", "1")
    assert code == 0
    assert "25 %" in said
    assert said.count("2,000/s, p99 4 ms") == 2
    api.on(f"DELETE {WHERE}/5", {}, status=204)
    assert fairlead("models", "stop-tuning", "m", "5", "--version", "1")[0] == 0
