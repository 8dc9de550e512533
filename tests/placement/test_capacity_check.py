"""Whether a rollout fits on the nodes."""

from dataclasses import replace

import pytest

from integrations.clusters.base import Node, Nodes, Resources
from placement.capacity_check import Wanted, room_for

GIB = 1 << 30
BIG, SMALL = Node("big", 4.0, 8 * GIB, 100), Node("small", 1.0, 2 * GIB, 100)
CANARY = Wanted("digits-00002", 3, Resources(1.0, GIB))


def nodes(*there: Node) -> Nodes:
    return Nodes(nodes=there, defaults=Resources(0.5, GIB), unknown="")


def test_what_fits_is_said_with_how_much_it_is() -> None:
    room = room_for([CANARY], nodes(BIG))
    assert (room.fits, room.pods, room.placed) == (True, 3, 3)
    assert room.message == "it fits: 3 pods more at its most demanding moment (3 of digits-00002)"


@pytest.mark.parametrize(
    ("node", "placed"),
    [
        pytest.param(replace(BIG, cpu_cores=2.5), 2, id="CPU"),
        pytest.param(replace(BIG, memory_bytes=GIB), 1, id="memory"),
        pytest.param(replace(BIG, pods=2), 2, id="number of pods"),
        pytest.param(replace(BIG, closed="is cordoned"), 0, id="cordoned"),
        pytest.param(replace(BIG, cpu_cores=-1.0), 0, id="overcommitted"),
    ],
)
def test_each_of_what_a_node_has_counts(node: Node, placed: int) -> None:
    room = room_for([CANARY], nodes(node))
    assert (room.fits, room.placed) == (False, placed)
    assert f"no node has room for {3 - placed} of digits-00002" in room.message


def test_pieces_on_several_nodes_are_no_room_for_a_large_pod() -> None:
    large = Wanted("digits-00002", 1, Resources(2.0, GIB))
    room = room_for([large], nodes(SMALL, SMALL, SMALL))
    assert room.fits is False
    assert room.message.endswith(f"({', '.join(['small has 1 CPU, 2 GiB, 100 pods left'] * 3)})")


def test_the_largest_are_placed_first() -> None:
    little = Wanted("digits-00002's transformer", 4, Resources(0.25, GIB // 8))
    large = Wanted("digits-00002", 1, Resources(4.0, GIB))
    assert room_for([little, large], nodes(BIG, SMALL)).fits is True


def test_what_is_not_said_is_the_clusters_default() -> None:
    assert room_for([Wanted("digits-00002", 2, Resources())], nodes(SMALL)).fits is True
    assert room_for([Wanted("digits-00002", 3, Resources())], nodes(SMALL)).fits is False


def test_what_pods_have_beside_the_replica_counts() -> None:
    four = Wanted("digits-00002", 4, Resources(1.0, GIB))
    assert room_for([four], nodes(BIG)).fits is True
    assert room_for([four], replace(nodes(BIG), beside=Resources(0.01, GIB // 16))).placed == 3


def test_what_is_not_known_is_said_with_the_reason() -> None:
    room = room_for([CANARY], Nodes(unknown="the nodes may not be read"))
    assert (room.fits, room.message) == (None, "whether it fits is not known: the nodes may not be read")


def test_pods_that_wait_already_are_told() -> None:
    room = room_for([CANARY], replace(nodes(), waiting=2))
    assert room.message.endswith("(2 pods wait for a node already)")
