"""Memory limit enforcement of replicas: by the kernel with cgroups, or by the watchdog alone."""

import os
import subprocess
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from common.errors import FairleadError
from integrations.clusters.local.agent.replicas import process_memory
from integrations.clusters.local.agent.replicas.memory_limit import Machine, MemoryPolicy, limit_of
from integrations.sandbox.command import command
from integrations.sandbox.memory_cgroup import MemoryGroup, MemoryGroups, own_place

_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True)
class ReplicaMemory:
    """Attributes: groups: where replicas get cgroups; None leaves all to the watchdog."""

    policy: MemoryPolicy = field(default_factory=MemoryPolicy)
    groups: MemoryGroups | None = None

    def group(self, name: str, requested_bytes: int | None) -> MemoryGroup | None:
        """Make the cgroup of a replica's process, with the same limit as the watchdog's.

        Raises:
            OSError: that is no longer possible.
        """
        if self.groups is None:
            return None
        return self.groups.group(name, limit_of(requested_bytes, Machine(*process_memory.machine()), self.policy))


def find_groups(folder: Path, *, spare: Collection[str] = ()) -> tuple[MemoryGroups | None, str]:
    """Return the cgroups of this folder's agent, and how replicas' memory is limited, as a part of a sentence.

    A program is started in one first, as a trial. Leftovers of an earlier agent of the folder are ended, except
    `spare`.
    """
    groups = None
    try:
        own, identity = own_place(), folder.stat()
        groups = MemoryGroups.below(own, f"fairlead-{identity.st_dev:x}-{identity.st_ino:x}", spare=spare)
        _try(groups)
    except (FairleadError, OSError) as error:
        if groups is not None and not spare:
            groups.close()
        why = error.strerror or str(error) if isinstance(error, OSError) else str(error)
        return None, f"the memory of replicas is looked at each second, as it cannot be limited by cgroups ({why})"
    return groups, f"the memory of replicas is limited by cgroups (version {groups.version})"


def _try(groups: MemoryGroups) -> None:
    """Start a program in a group; raises OSError where it does not run there."""
    group = groups.group("trial", process_memory.machine()[0])
    try:
        started = command(["true"], group=group.entry)
        tried = subprocess.run(started, capture_output=True, timeout=_TIMEOUT_S, check=False, text=True)
        if tried.returncode:
            raise OSError(tried.stderr.strip().rpartition("\n")[2] or os.strerror(tried.returncode))
    except subprocess.TimeoutExpired as error:
        raise OSError(str(error)) from error
    finally:
        group.remove()
