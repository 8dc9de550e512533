"""Work on a node with GPUs: what it should be like, and what it is like. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from integrations.clusters.base.gpus import NodeGpus


@dataclass(frozen=True, slots=True)
class DesiredNode:
    """What a node should be like.

    Attributes:
        mark: whose wish it is; a node is given back only by who cordoned it.
        cordoned: no further pod comes.
        evicted: pods, NAMESPACE/NAME, that have to leave as far as their disruption budgets allow it.
        config: how MIG manager is to cut its GPUs, by a name in its file; empty leaves that alone.
        configs: entries of that file (`mig-configs` of mig-parted, version v1) that have to be there.
    """

    name: str
    mark: str
    cordoned: bool
    evicted: tuple[str, ...] = ()
    config: str = ""
    configs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """A node as it is.

    Attributes:
        cordoned: by whomever; `mark` says by which wish, and is empty where it was somebody else.
        configs: entries of MIG manager's file; `delay_s` is how long they may take to come to the node.
    """

    gpus: NodeGpus
    cordoned: bool
    mark: str
    configs: Mapping[str, object]
    delay_s: int
