"""What was measured of a model version -> the least GPU slice that does. Pure.

Latency on a slice that was not measured is bounded by one that was: a smaller slice takes longer by as much as it has
fewer compute slices, at the most, and a larger one takes no longer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from deployments.placement.geometry import Geometry, Profile, usable_bytes

HEAD_ROOM_PERCENT = 20
_GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Measured:
    """What `profile` found out about a version on one kind of GPU.

    Attributes:
        memory_bytes: of the GPU at its largest batch, the process's context included.
        latency_ms: of a batch, by the number of compute slices it was measured with.
    """

    memory_bytes: int
    latency_ms: Mapping[int, float] = field(default_factory=dict)

    def latency_with(self, compute_slices: int) -> float | None:
        """Return how long a batch takes at the most on a slice; None where nothing was measured."""
        bounds = (ms * max(1.0, of / compute_slices) for of, ms in self.latency_ms.items())
        return min(bounds, default=None)


@dataclass(frozen=True, slots=True)
class Need:
    """The least slice that a replica can do with.

    Attributes:
        memory_bytes: with head-room.
        why: one sentence for people.
    """

    memory_bytes: int
    compute_slices: int
    why: str


@dataclass(frozen=True, slots=True)
class Misfit:
    """No slice of the product does; `why` says what is too small."""

    why: str


def needed(
    measured: Measured,
    geometry: Geometry,
    *,
    latency_limit_ms: float | None = None,
    head_room_percent: float = HEAD_ROOM_PERCENT,
) -> Need | Misfit:
    """Return the least slice of a product that holds a model and answers in time."""
    memory_bytes = int(measured.memory_bytes * (1 + head_room_percent / 100))
    asked = f"{_gib(measured.memory_bytes)} measured and {head_room_percent:g} % more make {_gib(memory_bytes)}"
    holding = [each for each in geometry.profiles.values() if each.memory_bytes >= memory_bytes]
    if not holding:
        return Misfit(f"{asked}, and a whole {geometry.product} has {_gib(_whole(geometry).memory_bytes)}")
    if latency_limit_ms is None:
        least = _least(geometry, holding)
        return Need(memory_bytes, least.compute_slices, f"{asked}: {least.name} has {_gib(usable_bytes(least.name))}")
    in_time = [each for each in holding if _within(measured, each, latency_limit_ms)]
    if not in_time:
        whole = measured.latency_with(_whole(geometry).compute_slices)
        told = "no latency was measured" if whole is None else f"a whole {geometry.product} takes {whole:.3g} ms"
        return Misfit(f"an answer within {latency_limit_ms:g} ms is asked for, and {told}")
    least = _least(geometry, in_time)
    takes = measured.latency_with(least.compute_slices)
    why = f"{asked}: {least.name} has {_gib(usable_bytes(least.name))} and takes {takes:.3g} ms of {latency_limit_ms:g}"
    return Need(memory_bytes, least.compute_slices, why)


def _within(measured: Measured, profile: Profile, limit_ms: float) -> bool:
    takes = measured.latency_with(profile.compute_slices)
    return takes is not None and takes <= limit_ms


def _least(geometry: Geometry, profiles: list[Profile]) -> Profile:
    return min(profiles, key=lambda each: (geometry.share(each.name), each.compute_slices, each.memory_slices))


def _whole(geometry: Geometry) -> Profile:
    return max(geometry.profiles.values(), key=lambda each: each.memory_slices)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / _GIB:.3g} GiB"
