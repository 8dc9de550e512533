"""Memory watchdog: looks each second at what replicas take, and ends those that take more than they may.

`memory_limit` decides; /proc is read in a thread, so that no probe and no route waits for it.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from integrations.clusters.local.agent import process_memory
from integrations.clusters.local.agent.memory_limit import Machine, MemoryPolicy, Use, is_short, largest, overrun
from integrations.clusters.local.agent.process_memory import ProcessTree, user_namespace

log = logging.getLogger(__name__)


class Watched(Protocol):
    """A process that runs for a replica."""

    @property
    def pid(self) -> int: ...

    def end_for_memory(self, complaint: str) -> None:
        """Kill it; `complaint` is a part of a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Tenant:
    """A replica's process, with the memory that its revision requests."""

    name: str
    process: Watched
    requested_bytes: int | None = None


class MemoryWatchdog:
    """What was seen of the machine's processes, for as long as the agent lives; `pid` is the agent's."""

    def __init__(self, pid: int, policy: MemoryPolicy) -> None:
        self._pid = pid
        self._policy = policy
        self._tree = ProcessTree()

    async def run(self, tenants: Callable[[], Iterable[Tenant]], every_s: float) -> None:
        """Look at the replicas again and again, and end those that have to go."""
        while True:
            await asyncio.sleep(every_s)
            if not (found := {tenant.name: tenant for tenant in tenants()}):
                continue
            try:
                ended = await asyncio.to_thread(self.look, list(found.values()))
            except Exception:  # what looks on must not end the agent; the next look may do better
                log.exception("the memory of replicas could not be read")
                continue
            for name, complaint in ended.items():
                found[name].process.end_for_memory(complaint)

    def look(self, tenants: list[Tenant]) -> dict[str, str]:
        """Return the names of those that have to be ended, with the reasons."""
        self._tree.look()
        groups = self._processes(tenants)
        machine = Machine(*process_memory.machine())
        short = is_short(machine, self._policy)
        uses = []
        for tenant in tenants:
            use = Use(tenant.name, process_memory.bound(groups[tenant.name]), tenant.requested_bytes)
            if short or overrun(use, machine, self._policy):
                use = Use(tenant.name, process_memory.exact(groups[tenant.name]), tenant.requested_bytes)
            uses.append(use)
        ended = {use.name: why for use in uses if (why := overrun(use, machine, self._policy))}
        if not ended:  # their end may be enough
            name, why = largest(uses, machine, self._policy)
            ended = {name: why} if name else {}
        return ended

    def _processes(self, tenants: list[Tenant]) -> dict[str, list[int]]:
        """Return the processes of each, first its own; what it left to the agent is known by its user namespace."""
        own = {tenant.name: tenant.process.pid for tenant in tenants}
        groups = {name: self._tree.below(pid) for name, pid in own.items()}
        orphans = self._tree.children(self._pid) - set(own.values())
        if orphans:
            spaces = {user_namespace(pid): name for name, pid in own.items()}
            spaces.pop(user_namespace(self._pid), None)
            for pid in orphans:
                if name := spaces.get(user_namespace(pid)):
                    groups[name] += self._tree.below(pid)
        return groups
