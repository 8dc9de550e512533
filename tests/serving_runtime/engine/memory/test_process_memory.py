"""The memory this process may have, as control groups and the machine tell it, and what work takes of it."""

import platform
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from serving_runtime.engine.memory.process_memory import growth, limit_bytes, resident_bytes

MEMINFO = "MemTotal:       1000 kB\nMemFree:        10 kB\n"


def place(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("own", "limits", "expected"),
    [
        pytest.param("0::/\n", {}, 1024000, id="no limit: the machine's memory"),
        pytest.param("0::/\n", {"memory.max": "max"}, 1024000, id="a group without a limit"),
        pytest.param("0::/\n", {"memory.max": "500000"}, 500000, id="in a container the group is the root"),
        pytest.param("0::/\n", {"memory.max": "9000000"}, 1024000, id="more than there is"),
        pytest.param("0::/a/b\n", {"a/b/memory.max": "max", "a/memory.max": "300"}, 300, id="a limit further out"),
        pytest.param("0::/a/b\n", {"a/b/memory.max": "200", "a/memory.max": "300"}, 200, id="the least of several"),
        pytest.param(
            "5:cpu,memory:/x\n0::/\n", {"memory/x/memory.limit_in_bytes": "400"}, 400, id="groups of version 1"
        ),
    ],
)
def test_the_limit_is_the_least_of_what_applies(
    tmp_path: Path, own: str, limits: dict[str, str], expected: int
) -> None:
    for name, text in limits.items():
        place(tmp_path / "cgroup" / name, f"{text}\n")
    memory, mine = place(tmp_path / "meminfo", MEMINFO), place(tmp_path / "own", own)
    assert limit_bytes(tmp_path / "cgroup", mine, memory) == expected


def test_this_process_has_a_limit_above_what_it_uses() -> None:
    assert 0 < resident_bytes() < limit_bytes()


def test_growth_is_measured() -> None:
    with growth() as grown:
        kept = np.ones(64 * 2**20, "u1")
    assert grown.size_bytes is not None
    assert grown.size_bytes > 0.9 * kept.nbytes


def test_growth_is_nobodys_when_work_overlaps() -> None:
    inner, outer = threading.Event(), threading.Event()
    found = []

    def work() -> None:
        with growth() as grown:
            inner.set()
            outer.wait(10)
        found.append(grown.size_bytes)

    thread = threading.Thread(target=work)
    with growth() as grown:
        thread.start()
        assert inner.wait(10)
    outer.set()
    thread.join(10)
    assert [grown.size_bytes, *found] == [None, None]
    with growth() as alone:
        pass
    assert alone.size_bytes is not None


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory as it does")
def test_freed_memory_is_kept_for_the_next_request() -> None:
    program = """
import resource
import numpy as np
from serving_runtime.engine.memory import process_memory as memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def request():
    images = [np.ones(1_300_000, "u1") for _ in range(8)]

memory.keep_one_heap()
request()
before = faults()
for _ in range(20):
    request()
print(faults() - before)
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert int(found.stdout) < 100, "each request asked the kernel for its pages anew: there are 2,500 in each"
