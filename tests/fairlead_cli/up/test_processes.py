"""Processes as /proc shows them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fairlead_cli.up import processes

Sleeper = Callable[..., "subprocess.Popen[str]"]


def test_a_process_is_known_by_its_start(sleeper: Sleeper) -> None:
    pid = sleeper().pid
    seen = processes.stat(pid)

    assert seen is not None
    assert (seen.parent, seen.group) == (os.getpid(), pid)
    assert processes.is_running(pid, seen.start_ticks)
    assert not processes.is_running(pid, seen.start_ticks + 1), "the id was used again"


def test_a_name_with_spaces_and_parentheses_is_read_right(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")
    with subprocess.Popen([str(program), "60"]) as process:
        seen = processes.stat(process.pid)
        process.kill()

    assert seen is not None
    assert seen.parent == os.getpid()


def test_a_zombie_runs_no_more(sleeper: Sleeper, eventually: Callable[..., Any]) -> None:
    process = sleeper()
    seen = processes.stat(process.pid)
    assert seen is not None
    process.kill()

    eventually(lambda: not processes.is_running(process.pid, seen.start_ticks))
    assert process.returncode is None, "nobody waited for it yet"


def test_nobody_has_no_stat() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        pass

    assert processes.stat(process.pid) is None


def test_the_environment_of_a_process(sleeper: Sleeper) -> None:
    pid = sleeper(FAIRLEAD_HOME="/some/home").pid

    assert processes.has_variable(pid, "FAIRLEAD_HOME", "/some/home")
    assert not processes.has_variable(pid, "FAIRLEAD_HOME", "/some")


def test_ending_a_group_takes_its_children_too(sleeper: Sleeper) -> None:
    parent = sleeper("subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])")
    children = set(processes.group_members(parent.pid)) - {parent.pid}
    assert len(children) == 1

    processes.end_groups([parent.pid], patience_s=5)

    assert processes.group_members(parent.pid) == []
    assert parent.wait() == -signal.SIGTERM


def test_ending_a_deaf_group_takes_no_longer_than_its_patience(sleeper: Sleeper) -> None:
    deaf = sleeper("signal.signal(signal.SIGTERM, signal.SIG_IGN)")
    began = time.monotonic()

    processes.end_groups([deaf.pid], patience_s=0.2)

    assert 0.2 <= time.monotonic() - began < 5
    assert deaf.wait() == -signal.SIGKILL


def test_ending_nothing_is_no_error() -> None:
    processes.end_groups([], patience_s=0)


def test_a_child_ends_with_its_killed_parent(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    code = f"""
import subprocess, sys, time
from pathlib import Path
from fairlead_cli.up import processes
child = subprocess.Popen(["/bin/sleep", "60"], start_new_session=True, preexec_fn=processes.ends_with_parent())
Path({str(tmp_path / "pid")!r}).write_text(f"{{child.pid}}\\n")
print("up", flush=True)
time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "up\n"
        child = processes.stat(int((tmp_path / "pid").read_text()))
        assert child is not None
        parent.kill()

    eventually(lambda: not processes.is_running(child.pid, child.start_ticks))
