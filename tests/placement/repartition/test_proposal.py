"""Which GPU is cut anew when nothing fits."""

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.gpu_nodes import MigNode, Tenant
from placement.mig.geometry import GEOMETRIES
from placement.mig.layouts import fits, layout_of
from placement.repartition.proposal import objection, repartition
from placement.slices.slice_types import Demand

_GIB = 1 << 30
_BIG = Demand("big", 1, 30 * _GIB, 3)


def node(name: str, taken: int = 0, *, gpus: int = 1, closed: str = "", strangers: int = 0) -> MigNode:
    """Return a node of H100s in slices of 1g.10gb, of which so many have a pod."""
    ours = [Tenant(f"{name}-{number}", Demand(f"small-{number}", 1, 8 * _GIB)) for number in range(taken)]
    others = [Tenant(f"{name}-stranger-{number}", None) for number in range(strangers)]
    slices = {"1g.10gb": 7 * gpus}
    return MigNode(name, "H100-80GB", gpus, slices, {"1g.10gb": taken + strangers}, (*ours, *others), closed)


def test_the_emptiest_node_is_cut_and_keeps_what_it_can() -> None:
    plan = repartition([_BIG], [node("a", 2), node("b"), node("c", 1)])
    assert plan is not None
    assert (plan.node, plan.before, plan.after) == (
        "b",
        (layout_of({"1g.10gb": 7}),),
        (layout_of({"1g.10gb": 4, "3g.40gb": 1}),),
    )
    assert plan.leaving == ()
    assert plan.why == (
        "with GPU 0 of b cut into 4 x 1g.10gb and 1 x 3g.40gb instead of 7 x 1g.10gb, 1 of 1 replicas find a slice"
    )


def test_pods_leave_only_where_they_find_a_slice_again() -> None:
    plan = repartition([_BIG], [node("a", 4)])
    assert plan is not None
    assert plan.leaving == ("a-0", "a-1", "a-2", "a-3")
    assert repartition([_BIG], [node("a", 5)]) is None
    elsewhere = repartition([_BIG], [node("a", 5), node("b", 6)])
    assert elsewhere is not None
    assert elsewhere.node == "a"  # one of its five goes to b


def of_revisions(name: str, *revisions: str) -> MigNode:
    """Return such a node with a pod of each revision; one that is named twice has two."""
    there = node(name, len(revisions))
    tenants = (replace(each, revision=revision) for each, revision in zip(there.tenants, revisions, strict=True))
    return replace(there, tenants=tuple(tenants))


@pytest.mark.parametrize(
    ("others", "held"),
    [
        pytest.param([], "2 pods of default/digits-00001", id="no room elsewhere"),
        pytest.param([node("b", 6, strangers=1)], "2 pods of default/digits-00001", id="elsewhere is full"),
        pytest.param([node("b", 5, strangers=1)], "1 pod of default/digits-00001", id="room for one elsewhere"),
        pytest.param([node("b", 4, strangers=1)], "", id="room for all but the one that may be missing"),
    ],
)
def test_what_a_disruption_budget_will_hold_is_foreseen(others: list[MigNode], held: str) -> None:
    digits = "default/digits-00001"
    plan = repartition([_BIG], [of_revisions("a", digits, digits, digits), *others])
    assert plan is not None
    assert plan.node == "a"
    told = f"; but disruption budgets will hold {held} on a, for which no other node has a slice: delete them"
    assert (told in plan.why) == bool(held)
    assert ("disruption" in plan.why) == bool(held)


def test_one_pod_of_each_revision_is_let_go() -> None:
    plan = repartition([_BIG], [of_revisions("a", "default/digits-00001", "default/digits-00002")])
    assert plan is not None
    assert "disruption" not in plan.why


def test_a_node_is_cut_that_nothing_holds_even_with_more_pods() -> None:
    held = of_revisions("a", "default/digits-00001", "default/digits-00001")
    full = of_revisions("b", *(f"default/other-{number}" for number in range(7)))
    plan = repartition([_BIG], [held, full])
    assert plan is not None
    assert plan.node == "b"
    assert "disruption" not in plan.why


@pytest.mark.parametrize(
    "other", [node("b", closed="is cordoned"), node("b", strangers=1)], ids=["closed", "has pods of others"]
)
def test_a_node_that_is_none_of_ours_to_cut_is_left_alone(other: MigNode) -> None:
    assert repartition([_BIG], [other]) is None
    plan = repartition([_BIG], [other, node("c", 2)])
    assert plan is not None
    assert plan.node == "c"


def test_no_more_gpus_are_cut_than_needed() -> None:
    one = repartition([Demand("big", 2, 30 * _GIB, 3)], [node("a", gpus=4)])
    assert one is not None
    assert one.gpus == (0,)
    three = repartition([Demand("big", 5, 30 * _GIB, 3)], [node("a", gpus=4)])
    assert three is not None
    assert three.gpus == (0, 1, 2)


def test_what_no_cut_can_serve_gets_no_plan() -> None:
    assert repartition([Demand("huge", 1, 90 * _GIB)], [node("a")]) is None


_UNLIKE = replace(node("a", 1), slices={"1g.10gb": 5, "2g.20gb": 1})


@pytest.mark.parametrize(
    ("now", "told"),
    [
        pytest.param([node("a", 2)], "", id="as it was"),
        pytest.param([node("a", 1)], "", id="a pod left by itself"),
        pytest.param([], "a is gone", id="gone"),
        pytest.param([node("a", 2, closed="is cordoned")], "a is cordoned", id="cordoned"),
        pytest.param([_UNLIKE], "a has 5 x 1g.10gb and 1 x 2g.20gb now, and had 7 x 1g.10gb", id="cut"),
        pytest.param([node("a", 2, strangers=1)], "a-stranger-0, which is none of a service's", id="a stranger"),
        pytest.param([node("a", 3)], "the GPU pod a-2 came to a since", id="another pod"),
    ],
)
def test_a_plan_is_right_only_while_the_node_is_as_it_was(now: list[MigNode], told: str) -> None:
    plan = repartition([_BIG], [node("a", 2)])
    assert plan is not None
    why = objection(plan, [_BIG], now)
    assert told in why
    assert bool(told) == bool(why)


def test_a_plan_is_right_only_while_all_that_leaves_finds_a_slice_again() -> None:
    plan = repartition([_BIG], [node("a", 5), node("b", 6)])
    assert plan is not None
    assert objection(plan, [_BIG], [node("a", 5), node("b", 6)]) == ""
    assert "finds no slice again" in objection(plan, [_BIG], [node("a", 5), node("b", 7)])


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 7), st.integers(1, 2)), min_size=1, max_size=3),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 60), st.integers(1, 4)), min_size=1, max_size=2),
)
def test_a_plan_is_a_valid_cut_that_has_room_for_all(
    nodes: list[tuple[int, int]], wanted: list[tuple[int, int, int]]
) -> None:
    there = [node(f"n{number}", taken, gpus=gpus) for number, (taken, gpus) in enumerate(nodes)]
    missing = [Demand(f"m{number}", count, gib * _GIB, slices) for number, (count, gib, slices) in enumerate(wanted)]
    plan = repartition(missing, there)
    if plan is None:
        return
    geometry = GEOMETRIES[plan.product]
    assert all(fits(geometry, dict(layout)) for layout in plan.after)
    assert 0 < plan.served <= sum(each.replicas for each in missing)
    new: Counter[str] = Counter()
    for layout in plan.after:
        new.update(dict(layout))
    elsewhere = sum(7 * each.gpus - len(each.tenants) for each in there if each.name != plan.node)
    assert new.total() + elsewhere >= plan.served + len(plan.leaving)
