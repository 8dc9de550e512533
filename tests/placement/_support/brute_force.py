"""The best packing there is, by trying all of them."""

from collections.abc import Sequence

from placement.slices.slice_types import Demand, Room


def best(demands: Sequence[Demand], rooms: Sequence[Room]) -> tuple[int, float]:
    """Return the most replicas that can be placed, and the least part of GPUs that takes."""
    slices = [room for room in rooms for _ in range(room.free)]
    replicas = [demand for demand in demands for _ in range(demand.replicas)]
    left: list[int | None] = [None] * len(slices)  # bytes left of a slice in use; -1 where it is not shared
    found = (0, 0.0)

    def go(index: int, placed: int, share: float) -> None:
        nonlocal found
        if placed + len(replicas) - index < found[0]:
            return
        if index == len(replicas):
            found = max(found, (placed, -share))
            return
        demand, seen = replicas[index], set()
        for number, each in enumerate(slices):
            before = left[number]
            free_bytes = each.memory_bytes if before is None else before if demand.shares else -1
            alike = (each.product, each.profile, before)
            fits = each.compute_slices >= demand.compute_slices and demand.product in ("", each.product)
            if fits and free_bytes >= demand.memory_bytes and alike not in seen:
                seen.add(alike)
                left[number] = free_bytes - demand.memory_bytes if demand.shares else -1
                go(index + 1, placed + 1, share + (each.share if before is None else 0.0))
                left[number] = before
        go(index + 1, placed, share)

    go(0, 0, 0.0)
    return found[0], -found[1]
