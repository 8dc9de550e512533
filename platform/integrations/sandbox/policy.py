"""What a process inside the wall may reach, and how that is handed to `launch.py`. Pure."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum


class NetworkAccess(StrEnum):
    """Which network a process sees. Where it can be given none of its own, it sees the machine's."""

    NONE = "none"
    """An empty one; on the machine's it opens no connection."""
    LOOPBACK = "loopback"
    """An empty one but for a loopback, for a program that asks itself."""
    LISTEN = "listen"
    """The machine's, where it answers TCP connections and opens none: for runtimes that take no Unix sockets."""
    ALL = "all"
    """The machine's."""

    @property
    def own(self) -> bool:
        """Say whether the process has a network of its own."""
        return self in (NetworkAccess.NONE, NetworkAccess.LOOPBACK)

    @property
    def connects(self) -> bool:
        """Say whether the process may open connections."""
        return self in (NetworkAccess.LOOPBACK, NetworkAccess.ALL)


class Mode(StrEnum):
    """What happens where this machine cannot give all of the wall: `FAIRLEAD_SANDBOX`."""

    BEST = "best"
    """What it can give is used."""
    REQUIRED = "required"
    """Nothing is started."""
    OFF = "off"
    """No wall at all: models are trusted as the platform is."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What a process may reach. Folders are meant with all below them; what does not exist is left out.

    Attributes:
        read: files and folders that it may read and run.
        listed: folders of which it may see names: packages are found by the names beside them.
        write: folders in which it may make, change and remove files as well.
        network: see `NetworkAccess`.
        shared_memory: whether it sees the machine's /dev/shm, in place of one of its own.
        own_processes: whether it sees no other processes than those that it starts, and these end with it.
    """

    read: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    network: NetworkAccess = NetworkAccess.NONE
    shared_memory: bool = False
    own_processes: bool = False


@dataclass(frozen=True, slots=True)
class Launch:
    """What `launch.py` is given.

    Attributes:
        parent: the process with which the program ends.
        limits: of `resource`, in lower case: {"core": 0}.
        sandbox: None puts no wall around the program.
        folder: where the program starts; empty leaves it where its parent is.
        group: the file by which it enters a cgroup; empty leaves it in that of its parent.
        enclosed: whether it has its namespaces already, by bubblewrap.
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
