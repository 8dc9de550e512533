"""`fairlead audit`."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from fairlead_cli.commands.audit import changes, moment

Fairlead = Callable[..., tuple[int, str, str]]
ENTRY = {
    "id": 1,
    "at": "2026-01-01T00:00:00Z",
    "actor": "ann (token ci)",
    "action": "member.set",
    "target": "teams/red/members/bob",
    "before": {"role": "viewer"},
    "after": {"role": "deployer"},
}


def test_entries_say_who_did_what_and_what_differs(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /audit?limit=50", {"next": None, "results": [ENTRY]})

    code, said, _ = fairlead("audit", "list")

    assert code == 0
    assert "ann (token ci)  member.set  teams/red/members/bob  role: viewer -> deployer" in said


def test_the_log_is_narrowed_by_object_person_action_and_time(fairlead: Fairlead, api: Any) -> None:
    fairlead(
        *("audit", "list", "--object", "models/digits", "--under", "teams/red", "--person", "ann", "--limit", "7"),
        *("--action", "member.set", "--since", "2026-01-31T12:00:00Z", "--until", "2026-02-01T00:00:00+02:00"),
    )

    assert parse_qs(urlsplit(api.seen[0].path).query) == {
        "target": ["models/digits"],
        "under": ["teams/red"],
        "user": ["ann"],
        "action": ["member.set"],
        "limit": ["7"],
        "since": ["2026-01-31T12:00:00+00:00"],
        "until": ["2026-02-01T00:00:00+02:00"],
    }


def test_a_moment_may_be_how_long_ago_it_was() -> None:
    before = datetime.now(UTC)
    then = datetime.fromisoformat(moment("12h"))
    assert before <= then + timedelta(hours=12) <= datetime.now(UTC)


@pytest.mark.parametrize("text", ["yesterday", "12", "-3h", "2026-13-01", ""])
def test_what_is_no_moment_is_a_wrong_command_line(fairlead: Fairlead, text: str) -> None:
    code, _, complained = fairlead("audit", "list", f"--since={text}")
    assert (code, "is no moment" in complained) == (2, True)


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        pytest.param(None, {"a": {"b": 1}}, ["+ a.b: 1"], id="made"),
        pytest.param({"a": 1}, None, ["- a: 1"], id="gone"),
        pytest.param({"a": 1, "b": 2}, {"a": 1, "b": 3}, ["b: 2 -> 3"], id="changed"),
        pytest.param(None, None, [], id="nothing of it"),
    ],
)
def test_changes_are_told_by_field(before: Any, after: Any, lines: list[str]) -> None:
    assert changes({"before": before, "after": after}) == lines


PART = {
    "broken": "",
    "complete": False,
    "position": 20000,
    "checked": 20000,
    "waiting": 0,
    "pruned": 0,
    "protected": False,
    "checkpoint": None,
    "public_keys": ["ab"],
}


def test_the_server_verifies_a_long_log_part_by_part(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /audit/verification", PART)
    api.on(
        "GET /audit/verification?after=20000",
        {**PART, "complete": True, "position": 20005, "checked": 5, "waiting": 2},
    )
    code, said, noted = fairlead("audit", "verify")
    assert (code, said) == (0, "20005 entries are whole, 0 pruned, 2 not chained yet\n")
    assert "20000 entries checked" in noted


def test_a_broken_log_is_one_sentence_and_exit_code_1(fairlead: Fairlead, api: Any) -> None:
    api.on("GET /audit/verification", PART)
    api.on("GET /audit/verification?after=20000", {**PART, "broken": "entry 7 (position 20001) was removed"})
    code, said, complained = fairlead("audit", "verify")
    assert (code, said) == (1, "")
    assert complained.splitlines()[-1].endswith("the audit log is broken: entry 7 (position 20001) was removed")
    assert fairlead("audit", "verify", "--public-key", "ab")[0] == 1


def test_an_export_replaces_no_file_and_leaves_nothing_of_a_failed_one(
    fairlead: Fairlead, api: Any, tmp_path: Path
) -> None:
    api.on("GET /audit/export", b"a line\n")
    assert fairlead("audit", "export", str(tmp_path / "log"))[0] == 0
    assert (tmp_path / "log").read_bytes() == b"a line\n"
    assert fairlead("audit", "export", str(tmp_path / "log"))[0] == 1
    api.refuse("GET /audit/export", 409, "no entry is chained yet")
    assert "no entry is chained yet" in fairlead("audit", "export", str(tmp_path / "second"))[2]
    assert [file.name for file in tmp_path.iterdir()] == ["log"]
    assert "cannot be written" in fairlead("audit", "export", str(tmp_path / "none" / "log"))[2]
