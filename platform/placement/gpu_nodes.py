"""GPU nodes that support MIG, and the pods on them. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from placement.mig.geometry import GEOMETRIES, Geometry
from placement.mig.layouts import Layout, spread_over
from placement.slices.slice_types import Demand, Room


@dataclass(frozen=True, slots=True)
class Tenant:
    """A pod on a GPU node; `demand` is what it needs elsewhere after an eviction, None for pods of no service.

    A pod without a name is still to come: its slice is promised.

    Attributes:
        revision: NAMESPACE/NAME of the service's revision, of whose pods one at a time may be missing; empty where
            unknown.
    """

    pod: str
    demand: Demand | None
    revision: str = ""


@dataclass(frozen=True, slots=True)
class MigNode:
    """A node whose GPUs can be cut.

    Attributes:
        slices: by profile, how many the node has; empty where its GPUs are whole.
        taken: by profile, how many of them have a pod.
        closed: why it may not be repartitioned, such as `is cordoned`; empty where it may.
    """

    name: str
    product: str
    gpus: int
    slices: Mapping[str, int]
    taken: Mapping[str, int]
    tenants: tuple[Tenant, ...] = ()
    closed: str = ""

    @property
    def geometry(self) -> Geometry:
        """Return the MIG geometry of its GPUs."""
        return GEOMETRIES[self.product]

    def cut(self) -> tuple[Layout, ...]:
        """Return the present layout of each of its GPUs."""
        return spread_over(self.geometry, self.gpus, self.slices)

    def rooms(self) -> Iterator[Room]:
        """Yield its free slices."""
        for profile, count in sorted(self.slices.items()):
            yield room(self.geometry, self.name, profile, count - self.taken.get(profile, 0))


def room(geometry: Geometry, node: str, profile: str, free: int) -> Room:
    """Return free slices of one profile."""
    kind, share = geometry.profiles[profile], geometry.share(profile)
    return Room(node, geometry.product, profile, kind.memory_bytes, kind.compute_slices, share, free)
