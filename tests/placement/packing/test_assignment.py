"""Which slice a service gets, whether there is room, and what would make some."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from integrations.clusters.base import Arrangement, GpuPod, NodeGpus
from placement.packing.assignment import Chosen, Model, NoRoom, as_named, automatic
from placement.packing.measured_latency import LatencyTarget, timings
from placement.slices.offers import offers
from tests.deployments._support.gpu_nodes import (
    _GIB,
    _SHARED_SMALL,
    LARGE,
    MIXED,
    SHARED,
    SINGLE,
    SMALL,
    UNCUT,
    WHOLE,
    measured,
    with_pods,
)


@pytest.mark.parametrize(
    ("measured_gib", "accelerator", "products", "told"),
    [
        pytest.param(2, WHOLE, (SINGLE.product,), "1g.5gb has 4.44 GiB", id="the smallest of all, by its node's label"),
        pytest.param(
            5, SMALL, (), "1g.10gb has 8.89 GiB", id="the least that holds it; every node that offers it does"
        ),
        pytest.param(20, LARGE, (), "3g.40gb has 35.6 GiB", id="a large one"),
    ],
)
def test_the_least_that_holds_the_model_is_chosen(
    measured_gib: int, accelerator: str, products: tuple[str, ...], told: str
) -> None:
    found = automatic(Model(measured_gib * _GIB), 1, [MIXED, SINGLE, UNCUT])
    assert isinstance(found, Chosen)
    assert (found.accelerator, found.products) == (accelerator, products)
    assert told in found.why
    assert f"{measured_gib} GiB measured on a CPU, 0.5 GiB for CUDA and 20 % more" in found.why


def test_a_larger_slice_is_taken_where_the_least_are_too_few() -> None:
    found = automatic(Model(5 * _GIB), 1, [with_pods(MIXED, SMALL, 4)])
    assert isinstance(found, Chosen)
    assert found.accelerator == LARGE


def test_a_whole_gpu_is_chosen_past_slices_of_the_same_name() -> None:
    found = automatic(Model(15 * _GIB), 2, [SINGLE, UNCUT])
    assert isinstance(found, Chosen)
    assert (found.accelerator, found.products) == (WHOLE, ("NVIDIA-A30",))
    assert "a whole A30" in found.why


def test_what_fits_on_no_gpu_says_what_is_too_small() -> None:
    found = automatic(Model(30 * _GIB), 1, [UNCUT])
    assert isinstance(found, NoRoom)
    assert "a whole A30 has" in found.why
    assert found.plan is None


def test_where_no_gpu_is_known_nothing_is_chosen() -> None:
    found = automatic(Model(_GIB), 1, [replace(UNCUT, product="NVIDIA-T4")])
    assert found == NoRoom("no node offers a GPU whose size is known")


def test_what_is_named_has_to_be_free() -> None:
    assert isinstance(as_named(SMALL, 4, [MIXED]), Chosen)
    found = as_named(SMALL, 3, [with_pods(MIXED, SMALL, 2)])
    assert isinstance(found, NoRoom)
    assert "room for 3 replicas is needed, and 2 of nvidia.com/mig-1g.10gb are free" in found.why


def test_nothing_is_free_on_a_node_that_takes_no_pods() -> None:
    assert isinstance(as_named(SMALL, 1, [replace(MIXED, closed="is cordoned")]), NoRoom)


def test_pods_that_leave_make_room() -> None:
    full = with_pods(MIXED, LARGE, 1, "default/digits")
    assert isinstance(as_named(LARGE, 1, [full]), NoRoom)
    assert isinstance(as_named(LARGE, 1, [full], leaving="default/digits"), Chosen)


def test_the_cut_that_would_make_room_is_told() -> None:
    all_small = replace(MIXED, resources={SMALL: 7})
    found = as_named(LARGE, 1, [all_small])
    assert isinstance(found, NoRoom)
    assert found.why.endswith("no node offers nvidia.com/mig-3g.40gb, but nvidia.com/mig-1g.10gb")
    assert found.plan is not None
    assert found.plan.after == ((("1g.10gb", 4), ("3g.40gb", 1)),)
    left_open = automatic(Model(20 * _GIB), 1, [all_small])
    assert isinstance(left_open, NoRoom)
    assert left_open.plan is not None


@pytest.mark.parametrize(
    "node",
    [
        pytest.param(replace(MIXED, resources={SMALL: 7}, strategy="single"), id="another strategy than mixed"),
        pytest.param(replace(MIXED, resources={SMALL: 7}, closed="is cordoned"), id="a cordoned node"),
        pytest.param(with_pods(replace(MIXED, resources={SMALL: 7}), SMALL, 1, ""), id="a pod of somebody else"),
        pytest.param(with_pods(replace(MIXED, resources={SMALL: 7}), SMALL, 5), id="pods that find no slice again"),
    ],
)
def test_no_cut_is_told_of_a_node_that_cannot_be_cut(node: NodeGpus) -> None:
    found = as_named(LARGE, 1, [node])
    assert isinstance(found, NoRoom)
    assert found.plan is None


def test_a_cut_makes_just_the_slice_that_is_named() -> None:
    found = as_named("nvidia.com/mig-2g.20gb", 1, [replace(MIXED, resources={LARGE: 2})])
    assert isinstance(found, NoRoom)
    assert found.plan is not None
    assert any("2g.20gb" in dict(layout) for layout in found.plan.after)


def test_what_is_free_already_is_not_counted_twice() -> None:
    found = as_named(LARGE, 2, [MIXED])
    assert isinstance(found, NoRoom)
    assert found.plan is not None
    assert found.plan.after == ((("3g.40gb", 2),),)
    assert (found.plan.leaving, found.plan.served) == ((), 1)
    assert as_named(LARGE, 3, [MIXED]).plan is None  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("arrangement", "told"),
    [
        pytest.param(Arrangement.SPREAD, "; spread, 1 on mixed, 1 on other", id="apart"),
        pytest.param(Arrangement.PACK, "; pack, 2 on other", id="on the node that has the least left"),
        pytest.param(None, "free nvidia.com/mig-1g.10gb", id="left to the cluster"),
    ],
)
def test_where_replicas_are_expected_is_told(arrangement: Arrangement | None, told: str) -> None:
    nodes = [MIXED, replace(MIXED, node="other", resources={SMALL: 2})]
    found = as_named(SMALL, 2, nodes, arrangement=arrangement)
    assert isinstance(found, Chosen)
    assert found.why.endswith(told)
    left_open = automatic(Model(5 * _GIB), 2, nodes, arrangement=arrangement)
    assert isinstance(left_open, Chosen)
    assert arrangement is None or told in left_open.why


def test_one_node_is_no_spreading_and_is_told() -> None:
    found = as_named(SMALL, 2, [MIXED], arrangement=Arrangement.SPREAD)
    assert isinstance(found, Chosen)
    assert found.why.endswith("; spread, 2 on mixed (no other node has one free)")


def test_what_is_not_known_here_can_be_spread_too() -> None:
    unknown = replace(MIXED, product="NVIDIA-L4", strategy="none", resources={WHOLE: 2})
    found = as_named(WHOLE, 2, [unknown, replace(unknown, node="other")], arrangement=Arrangement.SPREAD)
    assert isinstance(found, Chosen)
    assert found.why.endswith("; spread, 1 on mixed, 1 on other")


@pytest.mark.parametrize(
    ("profile", "target", "accelerator", "told"),
    [
        pytest.param(
            measured(small=5, large=2), LatencyTarget(6), SMALL, "; it took 5 ms there of 6 ms (p99)", id="the least"
        ),
        pytest.param(measured(small=5, large=2), LatencyTarget(4), LARGE, "; it took 2 ms there of 4", id="in time"),
        pytest.param(
            measured(small=5, large=2),
            LatencyTarget(19, batch_size=3),
            LARGE,
            "; it took 8 ms there of 19 ms (p99) for a batch of 3",
            id="by the next larger batch",
        ),
        pytest.param(measured(large=2), LatencyTarget(4), LARGE, "; it took 2 ms", id="what was measured is preferred"),
        pytest.param(
            {},
            LatencyTarget(4),
            SMALL,
            "; latency was not considered: 4 ms (p99) for a batch of 1 was measured on none",
            id="nothing was measured",
        ),
        pytest.param(
            measured(small=5),
            LatencyTarget(40, batch_size=8),
            SMALL,
            "for a batch of 8 was measured on none",
            id="no batch so large was measured",
        ),
        pytest.param(
            measured(small=5),
            None,
            SMALL,
            "not considered, since spec.placement.latency states none",
            id="not asked for",
        ),
    ],
)
def test_the_least_is_chosen_that_is_fast_enough_where_that_was_measured(
    profile: dict[str, object], target: LatencyTarget | None, accelerator: str, told: str
) -> None:
    found = automatic(Model(5 * _GIB, tuple(timings(profile)), target), 1, [MIXED])
    assert isinstance(found, Chosen)
    assert found.accelerator == accelerator
    assert told in found.why


def test_what_was_too_slow_wherever_it_was_measured_is_told() -> None:
    found = automatic(Model(_GIB, tuple(timings(measured(small=5, large=2))), LatencyTarget(1)), 1, [MIXED])
    assert isinstance(found, NoRoom)
    assert found.why == (
        "an answer within 1 ms (p99) for a batch of 1 is required, and it took 2 ms on 3g.40gb, 5 ms on 1g.10gb"
    )


@pytest.mark.parametrize(
    "found",
    [
        pytest.param({"resource": SMALL, "problem": "no slice was free"}, id="it could not be measured"),
        pytest.param(
            {"resource": SMALL, "device": {"kind": "cpu", "name": "x"}, "batches": []}, id="it ran on the CPU"
        ),
    ],
)
def test_a_measurement_that_was_on_no_gpu_does_not_count(found: dict[str, object]) -> None:
    assert list(timings({"on": [found]})) == []


def test_a_measurement_on_another_product_says_nothing() -> None:
    other = replace(MIXED, product="NVIDIA-H100-PCIe")
    found = automatic(Model(_GIB, tuple(timings(measured(small=5))), LatencyTarget(1)), 1, [other])
    assert isinstance(found, Chosen)
    assert "latency was not considered" in found.why


SHARED_UNCUT = replace(
    UNCUT, node="shared-uncut", product="NVIDIA-A30-SHARED", resources={WHOLE: 8}, sharers={WHOLE: 4}
)


def test_a_slice_is_shared_where_the_service_allows_it_and_its_part_of_the_memory_does() -> None:
    small, large = Model(_GIB // 2, shares=True), Model(2 * _GIB, shares=True)
    found = automatic(small, 5, [SHARED])
    assert isinstance(found, Chosen)
    assert found.accelerator == _SHARED_SMALL
    assert "one of the 4 parts of 1g.10gb has 2.22 GiB and is the least that does with 5 replicas free" in found.why
    assert found.why.endswith(
        "up to 4 pods share each, as spec.placement.sharing allows, and nothing but its own size holds one to its part "
        "of the memory"
    )
    alone = automatic(large, 1, [SHARED])
    assert isinstance(alone, Chosen)
    assert alone.accelerator == LARGE
    assert "share" not in alone.why


def test_a_service_that_does_not_allow_it_shares_nothing_and_is_told_of_it() -> None:
    found = automatic(Model(_GIB // 2), 1, [with_pods(SHARED, LARGE, 1)])
    assert isinstance(found, NoRoom)
    assert found.why.endswith(
        f"; it would fit on {_SHARED_SMALL}, which pods share, and spec.placement.sharing does not allow it"
    )
    nothing = automatic(Model(_GIB // 2), 1, [replace(SHARED, resources={_SHARED_SMALL: 28})])
    assert isinstance(nothing, NoRoom)
    assert "spec.placement.sharing does not allow it" in nothing.why
    too_large = automatic(Model(4 * _GIB), 1, [with_pods(SHARED, LARGE, 1)])
    assert isinstance(too_large, NoRoom)
    assert "sharing" not in too_large.why


def test_mps_holds_pods_to_their_part_of_a_whole_gpu() -> None:
    found = automatic(Model(3 * _GIB, shares=True), 2, [replace(SHARED_UNCUT, sharing="mps")])
    assert isinstance(found, Chosen)
    assert (found.accelerator, found.products) == (WHOLE, ())
    assert found.why.endswith("and MPS holds each to its part of the memory")


def test_pods_are_held_to_the_nodes_where_nobody_shares() -> None:
    found = automatic(Model(3 * _GIB), 1, [UNCUT, SHARED_UNCUT])
    assert isinstance(found, Chosen)
    assert (found.accelerator, found.products) == (WHOLE, (UNCUT.product,))


def test_by_how_many_it_is_shared_has_to_be_known() -> None:
    unknown = replace(SHARED, sharers={}, resources={_SHARED_SMALL: 28})
    found = automatic(Model(_GIB // 2, shares=True), 1, [unknown])
    assert found == NoRoom("no node offers a GPU whose size is known")


def test_no_cut_is_told_of_a_node_whose_slices_are_shared() -> None:
    found = as_named(LARGE, 1, [replace(SHARED, resources={_SHARED_SMALL: 28})])
    assert isinstance(found, NoRoom)
    assert found.plan is None


_NODES = st.lists(
    st.builds(
        lambda node, sharers, is_renamed, taken: replace(
            node,
            resources={
                f"{name}.shared" if is_renamed and sharers > 1 else name: count * sharers
                for name, count in node.resources.items()
            },
            sharers={}
            if sharers == 1
            else {f"{name}.shared" if is_renamed else name: sharers for name in node.resources},
            pods=(GpuPod("default/other", "", next(iter(node.resources)), taken),),
        ),
        st.sampled_from([MIXED, SINGLE, UNCUT]),
        st.integers(1, 4),
        st.booleans(),
        st.integers(0, 5),
    ),
    min_size=1,
    max_size=5,
).map(lambda nodes: [replace(node, node=f"{node.node}-{index}") for index, node in enumerate(nodes)])


@settings(max_examples=300)
@given(_NODES, st.floats(0.1, 30), st.integers(1, 6), st.booleans())
def test_wherever_a_replica_comes_its_part_of_the_memory_holds_it(
    nodes: list[NodeGpus], measured_gib: float, replicas: int, shares: bool
) -> None:
    found = automatic(Model(int(measured_gib * _GIB), shares=shares), replicas, nodes)
    if isinstance(found, NoRoom):
        return
    reached = [
        each
        for each in offers(nodes)
        if each.resource == found.accelerator and (not found.products or each.label in found.products)
    ]
    assert sum(each.free for each in reached) >= replicas
    for each in reached:
        assert each.memory_bytes >= int((measured_gib + 0.5) * 1.2 * _GIB) - 2
        assert shares or each.sharers == 1
