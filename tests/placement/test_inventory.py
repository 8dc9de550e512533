"""A node's GPUs as a picture."""

from dataclasses import replace

import pytest

from integrations.clusters.base import GpuPod, NodeGpus
from placement.inventory import Slice, Use, cut_of, gpu_node

_MIXED = NodeGpus(
    node="a",
    product="NVIDIA-H100-80GB-HBM3",
    memory_mib=81559,
    count=2,
    strategy="mixed",
    config="custom",
    config_state="success",
    resources={"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 8, "nvidia.com/mig-3g.40gb": 2},
    pods=(GpuPod("default/digits", "default/digits", "nvidia.com/mig-3g.40gb", 1),),
)
_SINGLE = replace(
    _MIXED,
    product="NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",
    memory_mib=4864,
    count=14,
    strategy="single",
    resources={"nvidia.com/gpu": 14},
    pods=(GpuPod("default/digits", "default/digits", "nvidia.com/gpu", 1),),
)
_WHOLE = replace(_MIXED, strategy="none", resources={"nvidia.com/gpu": 2}, pods=(), config="", config_state="")


def test_gpus_that_are_cut_by_claims_are_drawn_with_the_slices_that_pods_have() -> None:
    offered = {"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 10, "nvidia.com/mig-3g.40gb": 4}
    seen = gpu_node(replace(_MIXED, strategy="dynamic", resources=offered, config="", config_state=""))
    drawn = [[(each.profile, each.taken) for each in gpu.slices] for gpu in seen.gpus]
    assert sorted(drawn) == [[("3g.40gb", True)], [("whole GPU", False)]]
    assert seen.uses == tuple(Use(name, total, int("3g" in name)) for name, total in sorted(offered.items()))
    assert "alternatives" in seen.note


def test_gpus_that_are_cut_alike_are_drawn_alike_and_the_first_slices_as_taken() -> None:
    seen = gpu_node(_MIXED)
    assert (seen.product, seen.memory_slices, seen.note) == ("H100-80GB", 8, "")
    assert [[(each.profile, each.taken) for each in gpu.slices] for gpu in seen.gpus] == [
        [*[("1g.10gb", False)] * 4, ("3g.40gb", True)],
        [*[("1g.10gb", False)] * 4, ("3g.40gb", False)],
    ]
    assert [each.start for each in seen.gpus[0].slices] == [0, 1, 2, 3, 4]
    assert seen.uses == (Use("nvidia.com/mig-1g.10gb", 8, 0), Use("nvidia.com/mig-3g.40gb", 2, 1))


def test_with_the_strategy_single_slices_go_by_the_name_of_gpus() -> None:
    assert cut_of(_SINGLE) == {"1g.5gb": 14}
    seen = gpu_node(_SINGLE)
    assert seen.product == "A100-40GB"
    assert [len(gpu.slices) for gpu in seen.gpus] == [7, 7]
    assert sum(each.taken for gpu in seen.gpus for each in gpu.slices) == 1


def test_a_gpu_that_is_not_cut_is_whole() -> None:
    seen = gpu_node(replace(_WHOLE, pods=(GpuPod("default/big", "", "nvidia.com/gpu", 1),)))
    assert [gpu.slices for gpu in seen.gpus] == [
        (Slice("whole GPU", 0, 8, 7, taken=True),),
        (Slice("whole GPU", 0, 8, 7, taken=False),),
    ]


def test_of_two_gpus_one_may_be_whole() -> None:
    seen = gpu_node(replace(_MIXED, resources={"nvidia.com/gpu": 1, "nvidia.com/mig-1g.10gb": 7}, pods=()))
    assert [len(gpu.slices) for gpu in seen.gpus] == [1, 7]


@pytest.mark.parametrize(
    ("node", "gpus"),
    [
        pytest.param(
            replace(_WHOLE, resources={"nvidia.com/gpu.shared": 8}, sharers={"nvidia.com/gpu.shared": 4}),
            [["whole GPU"], ["whole GPU"]],
            id="whole",
        ),
        pytest.param(
            replace(_MIXED, resources={"nvidia.com/mig-3g.40gb": 12}, sharers={"nvidia.com/mig-3g.40gb": 3}),
            [["3g.40gb", "3g.40gb"], ["3g.40gb", "3g.40gb"]],
            id="slices",
        ),
        pytest.param(
            replace(
                _SINGLE,
                product=f"{_SINGLE.product}-SHARED",
                count=7,
                resources={"nvidia.com/gpu": 28},
                sharers={"nvidia.com/gpu": 4},
            ),
            [["1g.5gb"] * 7],
            id="slices that go by the name of GPUs",
        ),
    ],
)
def test_what_pods_share_is_drawn_once(node: NodeGpus, gpus: list[list[str]]) -> None:
    resource = next(iter(node.sharers))
    seen = gpu_node(replace(node, pods=(GpuPod("default/a", "", resource, 1), GpuPod("default/b", "", resource, 1))))
    assert [[each.profile for each in gpu.slices] for gpu in seen.gpus] == gpus
    assert sum(each.taken for gpu in seen.gpus for each in gpu.slices) == 2
    assert seen.note.startswith(f"Pods share each {resource} (by ")


@pytest.mark.parametrize(
    ("node", "note"),
    [
        (replace(_MIXED, closed="is cordoned"), "No pod may come: it is cordoned."),
        (replace(_MIXED, config_state="pending"), "MIG manager is to apply custom and reports pending."),
        (replace(_WHOLE, product=""), "It has no label nvidia.com/gpu.product; GPU Feature Discovery sets it."),
        (replace(_WHOLE, product="Tesla-T4"), "It cannot be cut by MIG, or how is not known here."),
        (
            replace(_MIXED, resources={"nvidia.com/mig-1g.11gb": 7}, pods=()),
            "Slices 1g.11gb of H100-80GB are not known here.",
        ),
    ],
)
def test_what_there_is_to_know(node: NodeGpus, note: str) -> None:
    assert gpu_node(node).note == note
