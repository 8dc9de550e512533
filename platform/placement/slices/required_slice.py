"""Required slice: the smallest MIG slice that holds a model version, by its measured memory. Pure."""

from dataclasses import dataclass

from placement.mig.geometry import Geometry, Profile, usable_bytes

HEAD_ROOM_PERCENT = 20
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Need:
    """The smallest sufficient slice of a replica.

    Attributes:
        memory_bytes: with head-room.
        why: one sentence for people.
    """

    memory_bytes: int
    compute_slices: int
    why: str


@dataclass(frozen=True, slots=True)
class Misfit:
    """No slice of the product suffices; `why` says what is too small."""

    why: str


def needed(memory_bytes: int, geometry: Geometry, *, head_room_percent: float = HEAD_ROOM_PERCENT) -> Need | Misfit:
    """Return the smallest slice of a product that holds a model.

    Args:
        memory_bytes: measured at its largest batch, the process's context included.
    """
    with_head_room = int(memory_bytes * (1 + head_room_percent / 100))
    asked = f"{_gib(memory_bytes)} measured and {head_room_percent:g} % more make {_gib(with_head_room)}"
    holding = [each for each in geometry.profiles.values() if each.memory_bytes >= with_head_room]
    if not holding:
        return Misfit(f"{asked}, and a whole {geometry.product} has {_gib(_whole(geometry).memory_bytes)}")
    least = min(holding, key=lambda each: (geometry.share(each.name), each.compute_slices, each.memory_slices))
    why = f"{asked}: {least.name} has {_gib(usable_bytes(least.name))}"
    return Need(with_head_room, least.compute_slices, why)


def _whole(geometry: Geometry) -> Profile:
    return max(geometry.profiles.values(), key=lambda each: each.memory_slices)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / _GIB:.3g} GiB"
