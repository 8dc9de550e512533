"""The machine's CPU and memory out of /proc."""

import pytest

from serving_runtime.telemetry.metrics.cpu import CpuMeter, busy_share, cpu_ticks, memory_bytes

STAT = "cpu  100 5 45 800 50 0 0 0 7 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"


@pytest.mark.feature("M6")
def test_utilization_is_the_share_of_ticks_that_were_not_idle() -> None:
    before = cpu_ticks(STAT)
    after = cpu_ticks("cpu  160 5 45 820 70 0 0 0 7 0\n")
    assert before == (850, 1000)
    assert busy_share(before, after) == 0.6
    assert busy_share(after, after) == 0


def test_used_memory_is_what_is_not_available() -> None:
    assert memory_bytes("MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\n") == (1_024_000, 614_400)


def test_this_machine_is_looked_at() -> None:
    meter = CpuMeter()
    meter.look()
    assert 0 <= meter.use.utilization <= 1
    assert 0 < meter.use.memory_used_bytes < meter.use.memory_total_bytes
