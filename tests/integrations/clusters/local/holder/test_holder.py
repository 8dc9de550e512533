"""The process that holds programs, asked by one agent after the other."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from common.process_identity import start_ticks
from integrations.clusters.local.holder import wire
from integrations.clusters.local.holder.client import Holder, HolderGoneError

SAYS = """
import os, sys
print(sorted(int(number) for number in os.listdir("/proc/self/fd"))[:-1], os.environ, flush=True)
for number in map(int, sys.argv[1:]):
    os.write(number, b"%d" % number)
"""


@pytest.fixture
def channel() -> Iterator[socket.socket]:
    """The end of an agent, of a holder that outlives it."""
    agents, its = wire.pair()
    with its:
        command = [sys.executable, "-m", "integrations.clusters.local.holder", str(its.fileno())]
        process = subprocess.Popen(command, pass_fds=[its.fileno()])
    yield agents
    agents.close()
    process.wait(timeout=10)


def started(holder: Holder, folder: Path, name: str, *command: str, note: Any = None) -> int:
    with (folder / name).open("ab") as output:
        return holder.start(name, command, {}, [output.fileno()], note).pid


def test_a_program_has_its_descriptors_by_number_and_nothing_else(
    channel: socket.socket, tmp_path: Path, eventually: Callable[..., Any]
) -> None:
    holder = Holder(channel)
    ends = [os.pipe() for _ in range(3)]
    with (tmp_path / "log").open("ab") as output:
        writing = [end for _, end in ends]
        holder.start(
            "one", [sys.executable, "-c", SAYS, "3", "4", "5"], {"A": "b"}, [output.fileno(), *writing[::-1]], None
        )
    for end in writing:
        os.close(end)
    assert [os.read(end, 16) for end, _ in ends] == [b"5", b"4", b"3"]
    assert [os.read(end, 16) for end, _ in ends] == [b""] * 3, "nobody else has them, the holder neither"
    eventually(lambda: holder.status("one") == 0, "it ends")
    said = (tmp_path / "log").read_text()
    assert said.startswith("[0, 1, 2, 3, 4, 5] environ({'A': 'b'")
    for end, _ in ends:
        os.close(end)


def test_the_next_agent_finds_what_runs_and_what_has_ended(
    channel: socket.socket, tmp_path: Path, eventually: Callable[..., Any]
) -> None:
    first = Holder(channel)
    note = {"text": "x" * 1_000_000}  # longer than any message
    pid = started(first, tmp_path, "runs", "/bin/sleep", "60", note=note)
    killed = started(first, tmp_path, "killed", "/bin/sleep", "60")
    started(first, tmp_path, "ends", sys.executable, "-c", "raise SystemExit(3)")
    os.kill(killed, signal.SIGKILL)
    wire.send(channel, {"verb": "list", "of": {}, "id": "of an agent that did not read the answer"})
    second = Holder(channel)
    assert second.pid == first.pid

    def found() -> dict[str, int | None]:
        return {held.name: held.status for held in second.programs()}

    eventually(lambda: found() == {"runs": None, "killed": -9, "ends": 3}, str(found()))
    runs = next(held for held in second.programs() if held.name == "runs")
    assert (runs.pid, runs.start_ticks, runs.note) == (pid, start_ticks(pid), note)
    second.forget("ends")
    with pytest.raises(RuntimeError, match="runs"):
        second.forget("runs")
    with pytest.raises(RuntimeError, match="runs runs"):
        started(second, tmp_path, "runs", "/bin/sleep", "60")
    second.end(runs)
    assert found() == {"killed": -9}
    assert start_ticks(pid) is None


def test_a_program_that_cannot_be_started_is_an_error_of_the_system(channel: socket.socket, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file") as raised:
        started(Holder(channel), tmp_path, "one", "/no/such/program")
    assert raised.value.errno == 2


def test_programs_end_with_the_holder_however_it_ends(tmp_path: Path, eventually: Callable[..., Any]) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)"
    holder = Holder.started()
    pid = started(holder, tmp_path, "deaf", sys.executable, "-c", deaf)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(holder.pid, number)
    assert holder.status("deaf") is None, "it ends with its channel alone"
    holder.close()
    assert start_ticks(pid) is None


def test_a_holder_that_is_gone_is_said(channel: socket.socket) -> None:
    holder = Holder(channel)
    os.kill(holder.pid, signal.SIGKILL)
    with pytest.raises(HolderGoneError, match="holder"):
        holder.programs()


def test_many_programs_end_at_once(channel: socket.socket, tmp_path: Path, eventually: Callable[..., Any]) -> None:
    holder = Holder(channel)
    for number in range(20):
        started(holder, tmp_path, str(number), "/bin/sleep", "0.2")
    deadline = time.monotonic() + 20
    while [held for held in holder.programs() if held.status is None]:
        assert time.monotonic() < deadline
    assert not holder.orphans() - holder.pids
