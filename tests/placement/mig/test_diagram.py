"""A node's GPUs as boxes: nothing of a GPU is left out, and pods are on what they asked for."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from integrations.clusters.base import GpuPod, NodeGpus
from placement.inventory import cut_drawn, gpu_node
from placement.mig.diagram import BoxState, FreeRoom, beside, drawn, free_rooms
from placement.mig.geometry import GEOMETRIES
from placement.mig.layouts import full_layouts
from tests.deployments._support.gpu_nodes import LARGE, MIXED, SINGLE, SMALL, UNCUT, WHOLE, with_pods

_LABELS = {"A30": ("NVIDIA-A30", 24), "H100-80GB": ("NVIDIA-H100-80GB-HBM3", 80), "A100-40GB": ("A100-SXM4-40GB", 40)}


@given(st.data(), st.sampled_from(sorted(_LABELS)), st.integers(1, 8))
def test_boxes_cover_each_gpu_from_end_to_end_once(data: st.DataObject, product: str, count: int) -> None:
    layout = dict(data.draw(st.sampled_from(full_layouts(product))))
    label, memory_gb = _LABELS[product]
    resources = {f"nvidia.com/mig-{profile}": number * count for profile, number in layout.items()}
    seen = replace(MIXED, product=label, memory_mib=memory_gb * 1024, count=count, resources=resources)
    gpus = drawn(gpu_node(seen))
    assert len(gpus) == count
    for gpu in gpus:
        at = 0
        for box in gpu.boxes:
            assert box.start == at
            at += box.size
        assert at == GEOMETRIES[product].memory_slices
        assert sum(bool(box.name) for box in gpu.boxes) == sum(layout.values())


def test_pods_are_drawn_on_slices_of_their_kind() -> None:
    seen = with_pods(with_pods(MIXED, SMALL, 2), LARGE, 1, "default/large")
    seen = replace(seen, pods=(*seen.pods, GpuPod("default/notebook", "", SMALL, 1)))
    (gpu,) = drawn(gpu_node(seen))
    assert [(box.name, box.state, box.pod, box.service) for box in gpu.boxes] == [
        ("1g.10gb", BoxState.TAKEN, "default/0", "default/other"),
        ("1g.10gb", BoxState.TAKEN, "default/1", "default/other"),
        ("1g.10gb", BoxState.TAKEN, "default/notebook", ""),
        ("1g.10gb", BoxState.FREE, "", ""),
        ("3g.40gb", BoxState.TAKEN, "default/0", "default/large"),
    ]


def test_whole_gpus_and_slices_called_so_have_their_pods_too() -> None:
    (first, second) = drawn(gpu_node(with_pods(UNCUT, WHOLE, 1)))
    assert [(box.name, box.service) for box in (*first.boxes, *second.boxes)] == [
        ("whole GPU", "default/other"),
        ("whole GPU", ""),
    ]
    (sliced,) = drawn(gpu_node(with_pods(SINGLE, WHOLE, 2)))
    assert [box.service for box in sliced.boxes if box.name] == ["default/other"] * 2 + [""] * 5
    assert sliced.boxes[-1].state is BoxState.UNUSED  # seven of eight memory slices


def test_two_cuts_are_drawn_beside_each_other_with_what_goes_and_comes() -> None:
    before = ((("1g.10gb", 7),), (("3g.40gb", 2),))
    after = ((("1g.10gb", 4), ("3g.40gb", 1)), (("3g.40gb", 2),))
    (cuts,) = beside(cut_drawn("H100-80GB", before), cut_drawn("H100-80GB", after), 8)
    assert cuts.before.index == 0
    assert [(box.name, box.change) for box in cuts.before.boxes] == [("1g.10gb", "")] * 4 + [
        ("1g.10gb", "gone")
    ] * 3 + [("", "")]
    assert [(box.name, box.change) for box in cuts.after.boxes] == [("1g.10gb", "")] * 4 + [("3g.40gb", "new")]


def test_room_on_nodes_that_take_no_pods_is_not_free() -> None:
    nodes: list[NodeGpus] = [with_pods(MIXED, SMALL, 1), replace(MIXED, node="away", closed="is cordoned"), UNCUT]
    assert free_rooms(map(gpu_node, nodes)) == (
        FreeRoom("A30", WHOLE, 2, 2, ("uncut",)),
        FreeRoom("H100-80GB", SMALL, 3, 8, ("mixed",)),
        FreeRoom("H100-80GB", LARGE, 1, 2, ("mixed",)),
    )
