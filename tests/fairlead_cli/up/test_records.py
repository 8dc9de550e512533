"""Leftovers of a kill -9 are found by their records, and only those are ended."""

import json
import signal
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from fairlead_cli.up import processes, records
from fairlead_cli.up.home import Home
from fairlead_cli.up.records import Record

Sleeper = Callable[..., "subprocess.Popen[str]"]


def ticks(pid: int) -> int:
    seen = processes.stat(pid)
    assert seen is not None
    return seen.start_ticks


def test_a_leftover_is_ended_and_forgotten(home: Home, sleeper: Sleeper) -> None:
    left = sleeper()
    records.Records(home, print).write("web", Record(left.pid, ticks(left.pid), 2, "it ended"))
    assert json.loads((home.run / "web.json").read_text()) == {
        "pid": left.pid,
        "start_ticks": ticks(left.pid),
        "restarts": 2,
        "message": "it ended",
    }

    assert records.end_leftovers(home) == ["web"]
    assert left.wait() == -signal.SIGTERM
    assert list(home.run.iterdir()) == []


def test_another_process_with_the_same_id_is_spared(home: Home, sleeper: Sleeper) -> None:
    stranger = sleeper()
    records.Records(home, print).write("web", Record(stranger.pid, ticks(stranger.pid) - 1))

    assert records.end_leftovers(home) == []
    assert stranger.poll() is None
    assert list(home.run.iterdir()) == []


def test_what_runs_on_purpose_is_spared(home: Home, sleeper: Sleeper) -> None:
    wanted, left = sleeper(), sleeper()
    records.Records(home, print).write("web", Record(wanted.pid, ticks(wanted.pid)))
    records.Records(home, print).write("gateway", Record(left.pid, ticks(left.pid)))

    assert records.end_leftovers(home, spare=frozenset({"web"})) == ["gateway"]
    assert wanted.poll() is None
    assert [path.name for path in home.run.iterdir()] == ["web.json"]


@pytest.mark.parametrize(
    ("started_for", "ended"),
    [
        pytest.param("this home", True, id="a child that outlived its recorded parent is ended"),
        pytest.param("another", False, id="a group that uses the number again is spared"),
    ],
)
def test_a_group_whose_leader_is_gone(
    home: Home, sleeper: Sleeper, eventually: Callable[..., Any], started_for: str, ended: bool
) -> None:
    code = "subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])"
    leader = sleeper(code, FAIRLEAD_HOME=str(home.path) if started_for == "this home" else "/elsewhere")
    records.Records(home, print).write("worker", Record(leader.pid, ticks(leader.pid)))
    leader.kill()
    leader.wait()
    assert processes.group_members(leader.pid) != []

    assert records.end_leftovers(home) == (["worker"] if ended else [])
    assert (processes.group_members(leader.pid) == []) is ended
    processes.end_groups([leader.pid], patience_s=0)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("", id="empty"),
        pytest.param("{", id="cut off"),
        pytest.param("[]", id="a list"),
        pytest.param('{"pid": 1}', id="half of it"),
        pytest.param('{"pid": null, "start_ticks": null, "restarts": 3, "message": "down"}', id="a part that was down"),
    ],
)
def test_a_record_that_names_no_process_is_only_forgotten(home: Home, content: str) -> None:
    (home.run / "web.json").write_text(content)

    assert records.end_leftovers(home) == []
    assert list(home.run.iterdir()) == []
