"""MIG layouts: which slices fit on a GPU together, by the memory slices at which each may start. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from placement.mig.geometry import GEOMETRIES, Geometry, Profile

Layout = tuple[tuple[str, int], ...]  # profile and count, sorted by name


@dataclass(frozen=True, slots=True)
class Placed:
    """A slice at its place on the GPU, in memory slices."""

    profile: str
    start: int


def layout_of(counts: Mapping[str, int]) -> Layout:
    """Return counts by profile as a layout."""
    return tuple(sorted((name, count) for name, count in counts.items() if count))


def arranged(geometry: Geometry, counts: Mapping[str, int]) -> tuple[Placed, ...] | None:
    """Return the places of a layout's slices on the GPU; None where they do not fit together."""
    wanted = [geometry.profiles[name] for name, count in sorted(counts.items()) for _ in range(count)]
    if sum(each.compute_slices for each in wanted) > geometry.compute_slices:
        return None
    wanted.sort(key=lambda profile: (len(profile.starts), -profile.memory_slices))
    found = _arrange(wanted, taken=0)
    return None if found is None else tuple(sorted(found, key=lambda placed: placed.start))


def fits(geometry: Geometry, counts: Mapping[str, int]) -> bool:
    """Return whether a GPU can be partitioned into these slices."""
    return arranged(geometry, counts) is not None


@cache
def full_layouts(product: str) -> tuple[Layout, ...]:
    """Return every layout of a product that has no room for a further slice, the coarsest first."""
    geometry = GEOMETRIES[product]
    everything = set(_grown(geometry, Counter(), list(geometry.profiles)))
    full = (each for each in everything if not any(_more(each, name) in everything for name in geometry.profiles))
    return tuple(sorted(full, key=lambda layout: (sum(count for _, count in layout), layout)))


def spread_over(geometry: Geometry, gpus: int, counts: Mapping[str, int]) -> tuple[Layout, ...]:
    """Return a layout for each GPU of a node so that together they have `counts`: alike where possible.

    The API server reports how many slices of each profile a node has, not which GPU has them. Where no arrangement is
    found, all slices are on the first GPU and the others have none, so that no slice is shown that does not exist.
    """
    if all(count % gpus == 0 for count in counts.values()):
        alike = {name: count // gpus for name, count in counts.items()}
        if fits(geometry, alike):
            return (layout_of(alike),) * gpus
    mixed: list[Counter[str]] = [Counter() for _ in range(gpus)]
    for name in sorted(counts, key=lambda name: -geometry.share(name)):
        for _ in range(counts[name]):
            home = next((each for each in mixed if fits(geometry, each + Counter([name]))), mixed[0])
            home[name] += 1
    return tuple(layout_of(each) for each in mixed)


def _arrange(wanted: Sequence[Profile], taken: int) -> tuple[Placed, ...] | None:
    if not wanted:
        return ()
    first, rest = wanted[0], wanted[1:]
    for start in first.starts:
        mask = ((1 << first.memory_slices) - 1) << start
        if not taken & mask and (others := _arrange(rest, taken | mask)) is not None:
            return (Placed(first.name, start), *others)
    return None


def _grown(geometry: Geometry, counts: Counter[str], names: Sequence[str]) -> Iterator[Layout]:
    yield layout_of(counts)
    for index, name in enumerate(names):
        more = counts + Counter([name])
        if fits(geometry, more):
            yield from _grown(geometry, more, names[index:])


def _more(layout: Layout, name: str) -> Layout:
    return layout_of(Counter(dict(layout)) + Counter([name]))
