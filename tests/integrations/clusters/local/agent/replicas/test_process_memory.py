"""What real processes take, as /proc says it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from integrations.clusters.local.agent.replicas import process_memory
from integrations.clusters.local.agent.replicas.process_memory import ProcessTree

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")

TAKEN = 64 << 20
SLACK = 24 << 20  # an interpreter
FORKED = f"""
import os, sys
kept = bytearray({TAKEN})
kept[::4096] = bytes([1]) * len(kept[::4096])
if os.fork():
    print(flush=True)
sys.stdin.read()
"""
UNMAPPED = f"""
import os, sys
os.write(file := os.memfd_create("kept"), bytes({TAKEN}))
print(flush=True)
sys.stdin.read()
"""

# As a user and no root, who reads everything.
DROP = "import os; os.setuid(65534) if os.getuid() == 0 else None"
HIDDEN = f"""
import ctypes, sys
kept = bytearray({TAKEN})
kept[::4096] = bytes([1]) * len(kept[::4096])
{DROP}
ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
print(flush=True)
sys.stdin.read()
"""


@contextmanager
def running(code: str) -> Iterator[list[int]]:
    """Run a program and yield its processes, once it has said that it has what it takes."""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        tree = ProcessTree()
        tree.look()
        yield tree.below(process.pid)
        process.communicate()


def test_a_page_that_processes_share_counts_once() -> None:
    with running(FORKED) as pids:
        assert len(pids) == 2
        assert process_memory.bound(pids) > 2 * TAKEN
        assert TAKEN < process_memory.exact(pids) < TAKEN + SLACK


def test_a_file_in_memory_counts_that_is_not_mapped() -> None:
    with running(UNMAPPED) as pids:
        assert process_memory.exact(pids) >= TAKEN


def test_a_process_that_hides_its_maps_counts_in_full() -> None:
    with running(HIDDEN) as (pid,):
        looks = f"{Path(process_memory.__file__).read_text()}\n{DROP}\nprint(exact([{pid}]))\nopen('/proc/{pid}/maps')"
        looked = subprocess.run([sys.executable, "-c", looks], capture_output=True, text=True, check=False)
    assert "PermissionError" in looked.stderr
    assert int(looked.stdout) > TAKEN


def test_what_has_ended_takes_nothing() -> None:
    with running("print(flush=True)") as pids:
        pass
    assert (process_memory.bound(pids), process_memory.exact(pids)) == (0, 0)


def test_a_tree_follows_what_starts_and_what_ends() -> None:
    tree = ProcessTree()
    with running("print(flush=True); input()") as (pid,):
        tree.look()
        assert pid in tree.children(os.getpid())
    tree.look()
    assert pid not in tree.children(os.getpid())


def test_the_machine_has_memory() -> None:
    total, available = process_memory.machine()
    assert 0 < available < total
