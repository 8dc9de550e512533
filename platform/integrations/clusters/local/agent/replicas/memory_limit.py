"""Memory limit of replicas: which one is ended for its memory use. Pure.

A service file's `requests.memory` is also the limit on Kubernetes. On one machine it only serves the capacity check, so
that it limits where the operator enables it. Otherwise one replica may use the machine except for a reserve. Where
others use the rest and the machine falls below its reserve, the replica furthest above its request is ended, as in
Kubernetes' eviction under node pressure; one that takes less than the reserve itself is not the cause, and stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from integrations.sandbox.memory_cgroup import Usage

_MIB, _GIB = 1 << 20, 1 << 30


class Limit(StrEnum):
    """Source of one replica's memory limit."""

    MACHINE = "machine"
    """The machine's memory, except for the reserve."""
    REQUESTS = "requests"
    """Its revision's request, as on Kubernetes; `MACHINE` where that is unset, and at most that."""


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """Attributes: reserve_bytes: kept free of replicas; None is a tenth of the machine, at most 1 GiB."""

    limit: Limit = Limit.MACHINE
    reserve_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine's memory: total, and available without swapping."""

    total_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class Use:
    """The memory of one replica with all its processes.

    Attributes:
        requested_bytes: of its revision; None where unset.
    """

    name: str
    used_bytes: int
    requested_bytes: int | None = None


def reserve_of(machine: Machine, policy: MemoryPolicy) -> int:
    """Return the reserve of the machine's memory, in bytes."""
    return min(machine.total_bytes // 10, _GIB) if policy.reserve_bytes is None else policy.reserve_bytes


def limit_of(requested_bytes: int | None, machine: Machine, policy: MemoryPolicy) -> int:
    """Return the memory limit of a replica, in bytes."""
    most = machine.total_bytes - reserve_of(machine, policy)
    return min(most, requested_bytes) if policy.limit is Limit.REQUESTS and requested_bytes else most


def overrun(use: Use, machine: Machine, policy: MemoryPolicy) -> str:
    """Return why a replica is ended for its own limit, as a part of a sentence; empty where it is not."""
    limit = limit_of(use.requested_bytes, machine, policy)
    if use.used_bytes <= limit:
        return ""
    return f"used {size(use.used_bytes)} of memory, where it may have {size(limit)}, and was killed"


def killed_by_kernel(usage: Usage | None) -> str:
    """Return why the kernel ended a replica for memory, as a part of a sentence; empty where it did not."""
    if usage is None or not usage.kills:
        return ""
    used = f"used {size(usage.peak_bytes)} of memory"
    if usage.at_limit:
        return f"{used}, where it may have {size(usage.limit_bytes)}, asked for more, and was killed"
    return f"{used} when this machine, or the container that the platform runs in, had no more, and was killed"


def is_short(machine: Machine, policy: MemoryPolicy) -> bool:
    """Return whether the machine has less memory left than its reserve."""
    return machine.available_bytes < reserve_of(machine, policy)


def largest(uses: Sequence[Use], machine: Machine, policy: MemoryPolicy) -> tuple[str, str]:
    """Return the name of the replica to end where the machine is short of memory, and why; both empty for none."""
    reserve = reserve_of(machine, policy)
    if not is_short(machine, policy) or not (big := [use for use in uses if use.used_bytes > reserve]):
        return "", ""
    use = max(big, key=lambda each: each.used_bytes - (each.requested_bytes or 0))
    left = f"this machine had {size(machine.available_bytes)} left of the {size(reserve)} that it keeps free"
    return use.name, f"used {size(use.used_bytes)} of memory when {left}, and was killed"


def size(number: int) -> str:
    """Format bytes for people."""
    return f"{number / _GIB:.1f} GiB" if number >= _GIB else f"{number / _MIB:.0f} MiB"
