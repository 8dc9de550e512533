"""Slice types: free slices, demands and placements, shared by packing and repartition. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Room:
    """Free slices of one kind on one node.

    Attributes:
        profile: such as `1g.10gb`; empty for whole GPUs.
        memory_bytes: of one slice.
        share: the fraction of a GPU that one slice takes, 0 to 1; decides what is left to others.
        free: the number of free slices.
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
    """A number of replicas of one model.

    Attributes:
        memory_bytes: of one replica, with head-room.
        shares: it may share a slice with others that do, as long as memory lasts.
        product: the only acceptable GPU product; any where empty. `profile` the same.
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
    """The placements of a packing, and how many replicas of each demand have none.

    Attributes:
        share: the GPUs taken, in whole GPUs.
    """

    placements: tuple[Placement, ...]
    missing: Mapping[str, int]
    share: float
