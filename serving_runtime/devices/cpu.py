"""CPU model name of this machine."""

import platform
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")


def cpu_name(cpuinfo: Path = _CPUINFO) -> str:
    """Return the model name that Linux reports, else the architecture."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next((name for name in names if name), platform.machine())
