"""MIG geometry: the profiles of each GPU product, as one table. Pure.

Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles" (fractions of memory and of SMs, number of
instances per profile), and what `nvidia-smi mig -lgipp` lists as placements. A GPU instance takes consecutive memory
slices and may begin at some of them only; it takes compute slices from the whole GPU's seven (of an A30: four).
Profiles with media engines (`+me`) are placed like those without, once per GPU, and are not offered to models.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from integrations.clusters.base import is_profile

_GIB = 1 << 30
# The GB in a profile's name exceed what a process can use: 4.75 GiB of 5 on an A100, 16 of 18 on an H200, the least of
# those known. A node's label, where present, has the exact number.
_USABLE = 16 / 18


@dataclass(frozen=True, slots=True)
class Profile:
    """One size of GPU instance, such as `3g.20gb`.

    Attributes:
        compute_slices: of the GPU's seven (A30: four).
        memory_slices: of the GPU's eight (A30: four).
        starts: the memory slices at which one may begin.
    """

    name: str
    compute_slices: int
    memory_slices: int
    starts: tuple[int, ...]

    @property
    def memory_bytes(self) -> int:
        """Return the least memory that a process can use on it."""
        return usable_bytes(self.name)


@dataclass(frozen=True, slots=True)
class Geometry:
    """The MIG geometry of one GPU product.

    Attributes:
        memory_gb: of the whole GPU, as in its name; GB are binary here, as NVIDIA counts them.
        profiles: by name, the smallest first.
    """

    product: str
    memory_gb: int
    compute_slices: int
    memory_slices: int
    profiles: Mapping[str, Profile]

    def share(self, profile: str) -> float:
        """Return the fraction of the GPU that a slice makes unavailable to others, 0 to 1."""
        slices = self.profiles[profile]
        return max(slices.compute_slices / self.compute_slices, slices.memory_slices / self.memory_slices)


def usable_bytes(profile: str) -> int:
    """Return the memory that a process can use on a slice, by the slice's name; raises ValueError."""
    if not is_profile(profile):
        raise ValueError(f"{profile!r} is no MIG profile; expected a name such as 1g.10gb")
    return int(int(profile.partition("g.")[2].removesuffix("gb")) * _GIB * _USABLE)


def _seven(product: str, sizes_gb: tuple[int, int, int, int]) -> Geometry:
    """Return a GPU of seven compute and eight memory slices, given the GB of one, two, four and all memory slices."""
    one, two, four, all_gb = sizes_gb
    profiles = (
        Profile(f"1g.{one}gb", 1, 1, (0, 1, 2, 3, 4, 5, 6)),
        Profile(f"1g.{two}gb", 1, 2, (0, 2, 4, 6)),
        Profile(f"2g.{two}gb", 2, 2, (0, 2, 4)),
        Profile(f"3g.{four}gb", 3, 4, (0, 4)),
        Profile(f"4g.{four}gb", 4, 4, (0,)),
        Profile(f"7g.{all_gb}gb", 7, 8, (0,)),
    )
    return Geometry(product, all_gb, 7, 8, {each.name: each for each in profiles})


_A30 = (
    Profile("1g.6gb", 1, 1, (0, 1, 2, 3)),
    Profile("2g.12gb", 2, 2, (0, 2)),
    Profile("4g.24gb", 4, 4, (0,)),
)
GEOMETRIES: Mapping[str, Geometry] = {
    each.product: each
    for each in (
        Geometry("A30", 24, 4, 4, {profile.name: profile for profile in _A30}),
        _seven("A100-40GB", (5, 10, 20, 40)),
        _seven("A100-80GB", (10, 20, 40, 80)),
        _seven("H100-80GB", (10, 20, 40, 80)),
        _seven("H100-94GB", (12, 24, 47, 94)),
        _seven("H100-96GB", (12, 24, 48, 96)),
        _seven("H200-141GB", (18, 35, 71, 141)),
        _seven("B200-180GB", (23, 45, 90, 180)),
    )
}
_BOARDS = (
    # a part of GPU Feature Discovery's `nvidia.com/gpu.product`, GB at the least by `nvidia.com/gpu.memory`, our name
    ("A30", 0, "A30"),
    ("A100", 60, "A100-80GB"),
    ("A100", 0, "A100-40GB"),
    ("GH200", 130, "H200-141GB"),  # its 144 GB have an H200's profiles
    ("GH200", 0, "H100-96GB"),
    ("H100", 95, "H100-96GB"),
    ("H100", 90, "H100-94GB"),
    ("H100", 0, "H100-80GB"),
    ("H200", 0, "H200-141GB"),
    ("B200", 0, "B200-180GB"),
)


def geometry_of(product: str, memory_mib: int) -> Geometry | None:
    """Return the geometry of a GPU; None for one without MIG, or unknown here.

    Args:
        product: the node's label `nvidia.com/gpu.product`, such as `NVIDIA-A100-SXM4-40GB` or, with the strategy
            `single`, `NVIDIA-A100-SXM4-40GB-MIG-1g.5gb`.
        memory_mib: the node's label `nvidia.com/gpu.memory`, which under `single` is a slice's and then does not count.
    """
    board, _, sliced = product.partition("-MIG-")
    named = re.search(r"-(\d\d)GB", board)  # three digits are the CPU's memory, as in GH200-480GB
    memory_gb = int(named[1]) if named else 0 if sliced else memory_mib / 1024
    words = set(re.split(r"[^A-Za-z0-9]", board))
    return next((GEOMETRIES[name] for part, least, name in _BOARDS if part in words and memory_gb >= least), None)
