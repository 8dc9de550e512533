"""What all replicas of an agent share."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from integrations.clusters.local.agent.replicas.replica_memory import ReplicaMemory
from integrations.clusters.local.agent.replicas.start_limit import Starts, most_at_once
from integrations.clusters.local.agent.timing import Timing
from integrations.clusters.local.files import Layout
from integrations.clusters.local.holder.client import Holder
from integrations.clusters.local.runtime import RUNTIME
from integrations.clusters.local.state_files import StateFiles
from serving_runtime.shared.egress import Network


@dataclass(frozen=True, slots=True)
class Workshop:
    """Dependencies shared by all replicas.

    Attributes:
        runtime: the program and its first arguments.
        changed: called after each change of a replica's state.
        holder: starts their processes.
        files: has their records.
        egress_allowed: networks that payload loggers may be in although they are not public.
        on_sockets: the runtime takes bound Unix sockets; else it takes ports of 127.0.0.1.
        relays: runtimes reach loggers and collectors through relays; else by themselves.
        memory: their memory limits.
        starts: the limit of concurrent starts.
        own_networks: sandboxes have networks of their own, or models are trusted.
        program_folders: each folder in one of them is a program that replicas may run; empty runs none.
    """

    layout: Layout
    timing: Timing
    changed: Callable[[], None]
    holder: Holder
    files: StateFiles
    runtime: Sequence[str] = RUNTIME
    egress_allowed: Sequence[Network] = ()
    on_sockets: bool = False
    relays: bool = False
    memory: ReplicaMemory = field(default_factory=ReplicaMemory)
    starts: Starts = field(default_factory=lambda: Starts(most_at_once()))
    own_networks: bool = True
    program_folders: Sequence[Path] = ()
