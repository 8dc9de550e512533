"""Sandbox policy: what a sandboxed process may reach, and how it is passed to `launch.py`. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum


class NetworkAccess(StrEnum):
    """Network access of a process. Where it cannot have its own network, it sees the machine's."""

    NONE = "none"
    """An empty network; on the machine's network it opens no connection."""
    LOOPBACK = "loopback"
    """A network with a loopback only, for a program that calls itself."""
    LISTEN = "listen"
    """The machine's, where it answers TCP connections and opens none: for runtimes that take no Unix sockets."""
    ALL = "all"
    """The machine's."""

    @property
    def own(self) -> bool:
        """Return whether the process has its own network."""
        return self in (NetworkAccess.NONE, NetworkAccess.LOOPBACK)

    @property
    def connects(self) -> bool:
        """Return whether the process may open connections."""
        return self in (NetworkAccess.LOOPBACK, NetworkAccess.ALL)


class Mode(StrEnum):
    """What happens where this machine does not support the whole sandbox: `FAIRLEAD_SANDBOX`."""

    BEST = "best"
    """The supported parts are used."""
    REQUIRED = "required"
    """Nothing is started."""
    OFF = "off"
    """No sandbox: models are trusted as the platform is."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a process may reach. Folders include all below them; paths that do not exist are left out.

    Attributes:
        read: files and folders that it may read and run.
        listed: folders of which it may see names: packages are found by the names beside them.
        write: folders in which it may make, change and remove files as well.
        network: see `NetworkAccess`.
        shared_memory: whether it sees the machine's /dev/shm instead of its own.
        own_processes: whether it sees only the processes that it starts, which end with it.
    """

    read: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: NetworkAccess = NetworkAccess.NONE
    shared_memory: bool = False
    own_processes: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """Input of `launch.py`.

    Attributes:
        parent: the process with which the program ends.
        limits: of `resource`, in lower case: {"core": 0}.
        sandbox: None starts the program without a sandbox.
        folder: the program's working directory; empty keeps its parent's.
        group: the file by which it enters a cgroup; empty keeps its parent's cgroup.
        enclosed: whether it is in its namespaces already, by bubblewrap.
    """

    parent: int
    limits: Mapping[str, int] = field(default_factory=dict)
    sandbox: Sandbox | None = None
    mode: Mode = Mode.BEST
    folder: str = ""
    group: str = ""
    enclosed: bool = False

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Launch":
        found = json.loads(text)
        inside = found.pop("sandbox")
        sandbox = None
        if inside is not None:
            sandbox = Sandbox(
                read=tuple(inside["read"]),
                listed=tuple(inside["listed"]),
                write=tuple(inside["write"]),
                network=NetworkAccess(inside["network"]),
                shared_memory=inside["shared_memory"],
                own_processes=inside["own_processes"],
            )
        return cls(**{**found, "mode": Mode(found["mode"])}, sandbox=sandbox)
