"""A server that rests gives its free memory back, once."""

import platform
import subprocess
import sys

import pytest

from serving_runtime.engine.memory.idle_memory_trim import EVERY_S, QUIET_S, IdleMemoryTrim

MIB = 1024 * 1024
LOOKS = int(QUIET_S / EVERY_S)


class Process:
    """What is read of a process: it has so much memory in use, and so much that is free and resident."""

    def __init__(self) -> None:
        self.cpu_s = 0.0
        self.used, self.free = 100 * MIB, 0
        self.given_back = 0
        self.trim = IdleMemoryTrim(lambda: self.cpu_s, lambda: self.used + self.free, self._give_back)

    def _give_back(self) -> None:
        self.given_back += 1
        self.free = 0

    def rest(self, looks: int = LOOKS) -> int:
        """Return how often memory was given back in so many looks at rest."""
        before = self.given_back
        for _ in range(looks):
            self.cpu_s += 0.001
            self.trim.look()
        return self.given_back - before

    def work(self) -> None:
        self.cpu_s += 0.5
        self.trim.look()


def test_free_memory_goes_back_after_some_seconds_of_rest_and_not_before() -> None:
    process = Process()
    process.free = 30 * MIB
    process.work()
    assert process.rest(LOOKS - 1) == 0
    assert process.rest(1) == 1
    assert process.rest() == 0
    assert process.free == 0


def test_work_in_between_begins_the_rest_anew() -> None:
    process = Process()
    process.free = 30 * MIB
    for _ in range(3):
        process.work()
        assert process.rest(LOOKS - 1) == 0


@pytest.mark.parametrize(
    ("used", "free", "times"),
    [
        pytest.param(0, 1 * MIB, 0, id="little is kept"),
        pytest.param(50 * MIB, 0, 1, id="what is in use is tried once"),
    ],
)
def test_what_is_not_worth_it_is_left_alone(used: int, free: int, times: int) -> None:
    process = Process()
    process.used += used
    process.free += free
    assert process.rest(5 * LOOKS) == times


def test_what_grows_after_less_is_in_use_is_seen() -> None:
    process = Process()
    process.used -= 50 * MIB
    assert process.rest() == 0
    process.free = 10 * MIB
    assert process.rest(1) == 1


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library keeps memory as it does")
def test_what_large_requests_took_leaves_a_real_process() -> None:
    program = f"""
import numpy as np
from serving_runtime.engine.memory import process_memory as memory
from serving_runtime.engine.memory.idle_memory_trim import IdleMemoryTrim

memory.keep_one_heap()
trim = IdleMemoryTrim(cpu_s=lambda: 0.0)
bodies = [np.ones(600_000, "u1") for _ in range(50)]
last = np.ones(1000, "u1")
del bodies
burst = memory.resident_bytes()
for _ in range({LOOKS}):
    trim.look()
print(burst - memory.resident_bytes())
"""
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert int(found.stdout) > 20 * MIB
