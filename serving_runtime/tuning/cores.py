"""CPU core count of this process: its affinity, limited by its control group's quota."""

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota: Path = _QUOTA) -> int:
    """Return a whole number of cores, at least 1 (Linux: cgroup v2, cpu.max)."""
    cores = len(os.sched_getaffinity(0))
    try:
        limit, period = quota.read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return cores
    return cores if limit == "max" else max(1, min(cores, int(limit) // int(period)))
