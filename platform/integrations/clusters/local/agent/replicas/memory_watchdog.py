"""Memory watchdog: reads replicas' memory each second, and ends those above their limit.

Of a replica with a cgroup the kernel may have ended one process, as version 1 does: the watchdog ends the others.

`memory_limit` decides; /proc is read in a thread, so that no probe and no route waits for it.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from integrations.clusters.local.agent.replicas import process_memory
from integrations.clusters.local.agent.replicas.memory_limit import (
    Machine,
    MemoryPolicy,
    Use,
    is_short,
    killed_by_kernel,
    largest,
    overrun,
)
from integrations.clusters.local.agent.replicas.process_memory import ProcessTree, user_namespace
from integrations.clusters.local.holder.client import Holder
from integrations.sandbox.memory_cgroup import MemoryGroup

log = logging.getLogger(__name__)


class Watched(Protocol):
    """A process that runs for a replica."""

    @property
    def pid(self) -> int: ...

    def end_for_memory(self, complaint: str) -> None:
        """Kill it; `complaint` is the reason, as a part of a sentence."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A replica's process, with the memory that its revision requests."""

    name: str
    process: Watched
    requested_bytes: int | None = None
    group: MemoryGroup | None = None


class _Orphan:
    """A process left running by an unknown replica: it has a replica's limit for itself."""

    def __init__(self, pid: int, holder: Holder) -> None:
        self.pid = pid
        self._holder = holder

    def end_for_memory(self, complaint: str) -> None:
        """Let the holder kill it: it is the holder's child, whose id stays valid until the holder waits for it."""
        log.warning("process %d, which a replica left running, %s", self.pid, complaint)
        self._holder.kill_orphan(self.pid)


class MemoryWatchdog:
    """Ends replicas above their memory limit; keeps the machine's process tree between two looks."""

    def __init__(self, policy: MemoryPolicy, holder: Holder) -> None:
        self._policy = policy
        self._holder = holder
        self._tree = ProcessTree()

    async def run(self, tenants: Callable[[], list[Tenant]], every_s: float) -> None:
        """Check the replicas periodically, and end those above their limit."""
        while True:
            await asyncio.sleep(every_s)
            if not (found := tenants()):
                continue
            try:
                for tenant, complaint in await asyncio.to_thread(self.look, found):
                    tenant.process.end_for_memory(complaint)
            except Exception:  # the watchdog must not end the agent; the next look may succeed
                log.exception("the memory of replicas could not be looked at")

    def look(self, tenants: Sequence[Tenant]) -> list[tuple[Tenant, str]]:
        """Return the replicas to end, each with the reason."""
        self._tree.look()
        groups = self._processes(tenants)
        machine = Machine(*process_memory.machine())
        short = is_short(machine, self._policy)
        uses = []
        for tenant, pids in groups:
            use = Use(tenant.name, process_memory.bound(pids), tenant.requested_bytes)
            if short or overrun(use, machine, self._policy):
                use = Use(tenant.name, process_memory.exact(pids), tenant.requested_bytes)
            uses.append(use)
        ended = {use.name: why for use in uses if (why := overrun(use, machine, self._policy))}
        for tenant in tenants:
            if tenant.group is not None and (why := killed_by_kernel(tenant.group.usage())):
                ended[tenant.name] = why
        if not ended:  # their end may be enough
            name, why = largest(uses, machine, self._policy)
            ended = {name: why} if name else {}
        return [(tenant, ended[tenant.name]) for tenant, _ in groups if tenant.name in ended]

    def _processes(self, tenants: Sequence[Tenant]) -> list[tuple[Tenant, list[int]]]:
        """Return each with its processes, first its own; orphans are matched by their user namespace."""
        groups = [(tenant, self._tree.below(tenant.process.pid)) for tenant in tenants]
        if left := self._holder.orphans():
            spaces = {user_namespace(tenant.process.pid): pids for tenant, pids in groups}
            spaces.pop(user_namespace(os.getpid()), None)
            for pid in left:
                if (its := spaces.get(user_namespace(pid))) is not None:
                    its += self._tree.below(pid)
                else:
                    groups.append((Tenant(f"orphan {pid}", _Orphan(pid, self._holder)), self._tree.below(pid)))
        return groups
