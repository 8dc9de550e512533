import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.serving.processes import Process, any_core

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
