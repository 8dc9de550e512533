"""Who gets which slice, beside the best that there is."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.clusters.base import Arrangement
from placement.gpu_nodes import room
from placement.mig.geometry import GEOMETRIES
from placement.packing.packing import pack
from placement.slices.slice_types import Demand, Packing, Room
from tests.placement._support.brute_force import best

_GIB = 1 << 30
_H100 = GEOMETRIES["H100-80GB"]


def rooms_of(node: str, product: str = "H100-80GB", **free: int) -> list[Room]:
    """Return free slices of a node: `g1_10=7` for seven `1g.10gb`."""
    names = {f"g{name.replace('g.', '_').removesuffix('gb')}": name for name in GEOMETRIES[product].profiles}
    return [room(GEOMETRIES[product], node, names[key], count) for key, count in free.items()]


def who(found: Packing) -> Counter[tuple[str, str, str]]:
    return Counter((each.demand, each.node, each.profile) for each in found.placements)


def check(found: Packing, demands: Sequence[Demand], rooms: Sequence[Room]) -> None:
    """Fail where a packing is not valid."""
    free = {(each.node, each.profile): each for each in rooms}
    asked = {each.name: each for each in demands}
    on_slice: dict[tuple[str, str, int], list[Demand]] = defaultdict(list)
    for each in found.placements:
        kind, demand = free[each.node, each.profile], asked[each.demand]
        assert 0 <= each.slice_index < kind.free
        assert kind.compute_slices >= demand.compute_slices
        assert demand.product in ("", kind.product)
        on_slice[each.node, each.profile, each.slice_index].append(demand)
    for (node, profile, _), there in on_slice.items():
        assert sum(each.memory_bytes for each in there) <= free[node, profile].memory_bytes
        assert len(there) == 1 or all(each.shares for each in there)
    placed = Counter(each.demand for each in found.placements)
    for name, each in asked.items():
        assert placed[name] + found.missing.get(name, 0) == each.replicas
    assert found.share == pytest.approx(sum(free[node, profile].share for node, profile, _ in on_slice))


def a_task(random: Random) -> tuple[list[Demand], list[Room]]:
    """Return a small task: up to 7 slices of three nodes, up to 8 replicas."""
    rooms: list[Room] = []
    for number, product in enumerate(random.choices(list(GEOMETRIES), k=random.randint(1, 3))):
        geometry = GEOMETRIES[product]
        for name in random.sample(list(geometry.profiles), k=random.randint(1, 3)):
            rooms.append(room(geometry, f"node-{number}", name, random.randint(0, 2)))
    while sum(each.free for each in rooms) > 7:
        rooms.pop()
    demands = [
        Demand(
            f"model-{number}",
            random.randint(1, 2),
            random.randint(1, 40) * _GIB // random.choice([1, 1, 4]),
            random.choice([1, 1, 2, 3]),
            shares=random.random() < 0.5,
            product=random.choice(["", "", rooms[0].product]),
        )
        for number in range(random.randint(1, 6))
    ]
    while sum(each.replicas for each in demands) > 8:
        demands.pop()
    return demands, rooms


def test_each_small_task_is_within_two_percent_of_the_best_there_is() -> None:
    random = Random(8)
    for number in range(400):
        demands, rooms = a_task(random)
        found, (count, share) = pack(demands, rooms), best(demands, rooms)
        check(found, demands, rooms)
        assert count >= len(found.placements) >= 0.98 * count, f"task {number}"
        assert found.share <= 1.02 * share, f"task {number}"


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(Arrangement))
def test_no_packing_is_invalid(seed: int, arrangement: Arrangement) -> None:
    random = Random(seed)
    tasks = [a_task(random) for _ in range(4)]  # together more than are tried in all orders
    demands = [replace(each, name=f"{n}/{each.name}") for n, (some, _) in enumerate(tasks) for each in some]
    rooms = [replace(each, node=f"{n}/{each.node}") for n, (_, some) in enumerate(tasks) for each in some]
    check(pack(demands, rooms, arrangement), demands, rooms)


def test_the_smallest_slice_that_does_is_taken() -> None:
    rooms = [*rooms_of("a", g1_10=1, g3_40=1, g7_80=1), *rooms_of("b", g2_20=1)]
    assert who(pack([Demand("m", 1, 12 * _GIB)], rooms)) == {("m", "b", "2g.20gb"): 1}


def test_what_is_small_leaves_the_large_slice_to_what_is_large() -> None:
    rooms = rooms_of("a", g1_10=1, g3_40=1)
    found = pack([Demand("small", 1, 5 * _GIB), Demand("large", 1, 30 * _GIB)], rooms)
    assert who(found) == {("small", "a", "1g.10gb"): 1, ("large", "a", "3g.40gb"): 1}
    assert not found.missing


def test_packed_onto_the_fullest_node_or_spread_over_nodes() -> None:
    rooms = [*rooms_of("a", g1_10=7), *rooms_of("b", g1_10=3), *rooms_of("c", g1_10=7)]
    demand = Demand("m", 3, 5 * _GIB)
    assert who(pack([demand], rooms, Arrangement.PACK)) == {("m", "b", "1g.10gb"): 3}
    assert {node for _, node, _ in who(pack([demand], rooms, Arrangement.SPREAD))} == {"a", "b", "c"}


def test_several_share_a_slice_as_long_as_its_memory_lasts() -> None:
    sharing = [Demand(name, 1, 4 * _GIB, shares=True) for name in "abc"]
    found = pack([*sharing, Demand("alone", 1, _GIB)], rooms_of("n", g1_10=3))
    assert not found.missing
    assert len({each.slice_index for each in found.placements}) == 3
    assert len([each for each in found.placements if each.demand == "alone"]) == 1


def test_what_finds_none_is_missing() -> None:
    found = pack([Demand("m", 5, 5 * _GIB), Demand("huge", 1, 90 * _GIB)], rooms_of("n", g1_10=3))
    assert found.missing == {"m": 2, "huge": 1}
