import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.serving.alone import Alone
from benchmarks.serving.processes import Process, any_core

ROOT = Path(__file__).parents[3]
CHILD = "while True: pass"
PARENT = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CHILD!r}])"


@pytest.fixture
def family(tmp_path: Path) -> Iterator[Process]:
    process = Process([sys.executable, "-c", PARENT], tmp_path / "log", cores=any_core())
    yield process
    process.stop()


def test_the_processor_time_of_children_counts_and_they_end_with_their_parent(family: Process) -> None:
    family.wait_until(lambda: len(family._family()) == 2)
    child = family._family()[1]
    deadline = time.monotonic() + 120
    before = family.cpu_s()
    while family.cpu_s() < before + 0.2:
        assert time.monotonic() < deadline
    assert family.rss_mb() > 5
    family.stop()
    while child in _alive():
        assert time.monotonic() < deadline


def test_a_server_that_ends_before_it_is_ready_is_told_with_its_last_words(tmp_path: Path) -> None:
    process = Process(
        [sys.executable, "-c", "import sys; sys.exit('no such model')"], tmp_path / "log", cores=any_core()
    )
    with pytest.raises(RuntimeError, match="it ended with code 1: no such model"):
        process.wait_until(lambda: False)


@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_program_that_is_ended_says_so_in_one_line_and_leaves_nothing_behind(
    tmp_path: Path, sign: signal.Signals, code: int
) -> None:
    program = f"""
import signal, sys
from pathlib import Path
from benchmarks.serving.processes import Process, any_core, run_program

def main():
    process = Process([sys.executable, "-c", {CHILD!r}], Path("log"), cores=any_core())
    print(process.pid, flush=True)
    signal.pause()

run_program(main)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        child = int(running.stdout.readline())
        running.send_signal(sign)
        _, said = running.communicate(timeout=120)
    assert (running.returncode, said) == (code, "ended before it was done; nothing was written\n")
    assert child not in _alive()


def test_what_runs_alone_does_not_hear_the_ctrl_c_of_a_terminal_and_ends_with_its_input(tmp_path: Path) -> None:
    alone = Alone(tmp_path)
    assert os.getsid(alone._process.pid) == alone._process.pid
    alone.stop()
    assert alone._process.returncode == 0


def _alive() -> set[int]:
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = (entry / "stat").read_text().rpartition(")")[2].split()[0]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z":
                found.add(int(entry.name))
    return found
