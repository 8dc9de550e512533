"""Desired and observed state of a GPU node. Standard library only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from integrations.clusters.base.gpus import NodeGpus


@dataclass(frozen=True, slots=True)
class DesiredNode:
    """Desired state of a GPU node.

    Attributes:
        mark: the repartition that set it; a node is uncordoned only by the repartition that cordoned it.
        cordoned: no further pods are scheduled.
        evicted: pods, NAMESPACE/NAME, to evict as far as their disruption budgets allow it.
        config: MIG configuration for its GPUs, by a name in MIG manager's file; empty leaves it unchanged.
        configs: required entries of that file (`mig-configs` of mig-parted, version v1).
    """

    name: str
    mark: str
    cordoned: bool
    evicted: tuple[str, ...] = ()
    config: str = ""
    configs: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ObservedNode:
    """Observed state of a GPU node.

    Attributes:
        cordoned: by anyone; `mark` is the repartition that cordoned it, empty for anyone else.
        configs: entries of MIG manager's file; `delay_s` is how long they may take to reach the node.
    """

    gpus: NodeGpus
    cordoned: bool
    mark: str
    configs: Mapping[str, object]
    delay_s: int
