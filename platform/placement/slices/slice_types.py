"""Slices of a cluster, and what is asked of them: the words of `packing.py` and `repartition.py`. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """Free slices of one kind on one node.

    Attributes:
        profile: such as `1g.10gb`; empty for whole GPUs.
        memory_bytes: of one slice.
        share: the part of a GPU that one slice takes, 0 to 1; what is left to others is told by it.
        free: how many there are.
    """

    node: str
    product: str
    profile: str
    memory_bytes: int
    compute_slices: int
    share: float
    free: int


@dataclass(frozen=True, slots=True)
class Demand:
    """So many replicas of one model.

    Attributes:
        memory_bytes: of one replica, with head-room.
        shares: it may share a slice with others that do, as long as memory lasts.
        product: the only GPU product that will do; any where it is empty. `profile` the same.
    """

    name: str
    replicas: int
    memory_bytes: int
    compute_slices: int = 1
    shares: bool = False
    product: str = ""
    profile: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """One replica on one slice; `slice_index` counts the free slices of that kind on the node."""

    demand: str
    node: str
    profile: str
    slice_index: int


@dataclass(frozen=True, slots=True)
class Packing:
    """Who gets which slice, and how many replicas of whom get none.

    Attributes:
        share: how much of GPUs is taken by it, in whole GPUs.
    """

    placements: tuple[Placement, ...]
    missing: Mapping[str, int]
    share: float
