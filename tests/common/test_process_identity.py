"""Names of processes, and whether they still run."""

import os
import subprocess
import sys

import pytest

from common.process_identity import ProcessName, myself, parse, start_ticks


def test_this_process_has_a_name_that_can_be_written_down() -> None:
    me = myself()
    assert (me.pid, me.start_ticks) == (os.getpid(), start_ticks(os.getpid()))
    assert me.place
    assert parse(str(me)) == me


def test_others_on_this_machine_are_of_the_same_place() -> None:
    code = "from common.process_identity import myself; print(myself())"
    said = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONPATH": "platform"}, capture_output=True, text=True, check=True
    )
    other = parse(said.stdout.strip())
    assert other is not None
    assert (other.place, other.pid != os.getpid()) == (myself().place, True)
    assert start_ticks(other.pid) != other.start_ticks, "it has ended"


def test_a_zombie_does_not_run() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert start_ticks(process.pid) is None


@pytest.mark.parametrize("text", ["", "3f2a", "3f2a.1", "3f2a.one.2", "3f2a.1.two"])
def test_what_names_no_process(text: str) -> None:
    assert parse(text) is None


def test_a_place_without_a_name_is_kept() -> None:
    assert parse(str(ProcessName("", 1, 2))) == ProcessName("", 1, 2)
