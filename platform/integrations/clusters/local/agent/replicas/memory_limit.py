"""Memory limit of replicas: which of them is ended for the memory that it takes. Pure.

A service file's `requests.memory` is also the limit on Kubernetes. On one machine it was only ever checked for room, so
that it limits where the operator says so. Without, one replica may have the machine but for a reserve. Where others
take the rest and the machine falls below its reserve, the replica goes that is furthest above its request, as in
Kubernetes' eviction under node pressure; one that takes less than the reserve itself is not the cause, and stays.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from integrations.sandbox.memory_cgroup import Usage

_MIB, _GIB = 1 << 20, 1 << 30


class Limit(StrEnum):
    """What limits one replica's memory."""

    MACHINE = "machine"
    """What the machine has, but for the reserve."""
    REQUESTS = "requests"
    """What its revision requests, as on Kubernetes; `MACHINE` where that says nothing, and at most that."""


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """Attributes: reserve_bytes: what replicas leave to all else; None is a tenth of the machine, at most 1 GiB."""

    limit: Limit = Limit.MACHINE
    reserve_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine's memory: all of it, and what programs could still have without swapping."""

    total_bytes: int
    available_bytes: int


@dataclass(frozen=True, slots=True)
class Use:
    """The memory of one replica with all its processes.

    Attributes:
        requested_bytes: of its revision; None where that does not say.
    """

    name: str
    used_bytes: int
    requested_bytes: int | None = None


def reserve_of(machine: Machine, policy: MemoryPolicy) -> int:
    """Return what is kept free of the machine's memory, in bytes."""
    return min(machine.total_bytes // 10, _GIB) if policy.reserve_bytes is None else policy.reserve_bytes


def limit_of(requested_bytes: int | None, machine: Machine, policy: MemoryPolicy) -> int:
    """Return how much memory a replica may have, in bytes."""
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
    """Return bytes as people write them."""
    return f"{number / _GIB:.1f} GiB" if number >= _GIB else f"{number / _MIB:.0f} MiB"
