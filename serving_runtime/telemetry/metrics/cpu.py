"""CPU and memory metrics of the machine, from /proc (Triton: CPU metrics)."""

from dataclasses import dataclass
from pathlib import Path

_STAT = Path("/proc/stat")
_MEMINFO = Path("/proc/meminfo")


@dataclass(frozen=True, slots=True)
class CpuUse:
    """CPU and memory use of the machine.

    Attributes:
        utilization: share of all cores' time between two samples that was not idle, 0 to 1.
        memory_used_bytes: memory that is not available to new processes.
    """

    utilization: float
    memory_total_bytes: int
    memory_used_bytes: int


class CpuMeter:
    """Samples the machine; `use` is the last sample."""

    def __init__(self) -> None:
        self._ticks = cpu_ticks(_STAT.read_text())
        self.use = CpuUse(0.0, *memory_bytes(_MEMINFO.read_text()))

    def current(self) -> CpuUse:
        return self.use

    def look(self) -> None:
        """Update `use`; the utilization is that since the sample before."""
        ticks = cpu_ticks(_STAT.read_text())
        self.use = CpuUse(busy_share(self._ticks, ticks), *memory_bytes(_MEMINFO.read_text()))
        self._ticks = ticks


def cpu_ticks(stat: str) -> tuple[int, int]:
    """Return idle and total ticks since boot, of /proc/stat's first line (proc(5))."""
    user, nice, system, idle, iowait, irq, softirq, steal = [int(field) for field in stat.split(maxsplit=9)[1:9]]
    return idle + iowait, user + nice + system + idle + iowait + irq + softirq + steal


def busy_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return the non-idle share of the ticks between two samples; 0 where none have passed."""
    idle, total = after[0] - before[0], after[1] - before[1]
    return (total - idle) / total if total > 0 else 0.0


def memory_bytes(meminfo: str) -> tuple[int, int]:
    """Return total and used bytes, of /proc/meminfo (proc(5))."""
    kibibytes = {line.partition(":")[0]: int(line.split()[1]) for line in meminfo.splitlines() if ":" in line}
    total, available = kibibytes["MemTotal"], kibibytes["MemAvailable"]
    return total * 1024, (total - available) * 1024
