"""What a benchmark ran on, for who reads its figures later."""

import os
import platform
from pathlib import Path


def described() -> dict[str, object]:
    """Return the processor, how many cores, the Python, and how busy it was before the benchmark began."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    load = [round(load, 1) for load in os.getloadavg()]
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "load_before": load}
