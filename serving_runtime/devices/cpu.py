"""What this machine's CPU is called."""

import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def cpu_name(cpuinfo: Path = _CPUINFO) -> str:
    """Return the model that Linux tells; the architecture where it tells none."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    told = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next((name for name in told if name), platform.machine())
