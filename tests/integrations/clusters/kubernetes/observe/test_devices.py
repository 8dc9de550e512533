"""GPUs that pods claim, as ResourceSlices and ResourceClaims have them."""

from dataclasses import replace
from typing import Any

import pytest

from integrations.clusters.base import GpuPod
from integrations.clusters.kubernetes.observe.devices import gpus
from placement.packing.assignment import Chosen, Model, NoRoom, as_named, automatic
from placement.slices.offers import mig_nodes, offers
from tests.integrations._support.devices import claim, cut_ahead, cut_by_claims, whole

WHOLE, SMALL, LARGE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb"
SMALL_0, LARGE_0, LARGE_4 = "gpu-0-mig-1g10gb-19-0", "gpu-0-mig-3g40gb-9-0", "gpu-0-mig-3g40gb-9-4"


def node(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec, "status": {}}


def pod(name: str, service: str = "") -> dict[str, Any]:
    labels = {"fairlead/service": service, "fairlead/revision": f"{service}-00001"} if service else {}
    return {"metadata": {"namespace": "default", "name": name, "labels": labels}}


def free(slices: list[dict[str, Any]], claims: list[dict[str, Any]], name: str = "a") -> dict[str, int]:
    return {each.resource: each.free for each in offers(gpus([node(name)], [], slices, claims))}


@pytest.mark.parametrize(
    ("held", "left"),
    [
        ((), {WHOLE: 2, SMALL: 14, LARGE: 4}),
        ((SMALL_0,), {WHOLE: 1, SMALL: 13, LARGE: 3}),
        ((LARGE_0,), {WHOLE: 1, SMALL: 10, LARGE: 3}),
        ((LARGE_4,), {WHOLE: 1, SMALL: 11, LARGE: 3}),
        ((LARGE_0, LARGE_4), {WHOLE: 1, SMALL: 7, LARGE: 2}),
        (("gpu-1",), {WHOLE: 1, SMALL: 7, LARGE: 2}),
        (("gpu-0", "gpu-1"), {WHOLE: 0, SMALL: 0, LARGE: 0}),
    ],
)
def test_shared_counters_say_how_many_more_of_each_kind_there_are(held: tuple[str, ...], left: dict[str, int]) -> None:
    assert free(cut_by_claims("a", 2), [claim("one", "", *held, node="a")] if held else []) == left


def test_a_node_that_is_cut_by_claims_has_its_pods() -> None:
    claims = [claim("digits-gpu", "digits-x", LARGE_0, node="a"), claim("other", "notebook", SMALL_0, node="b")]
    slices = [*cut_by_claims("a", 1), *cut_by_claims("b", 1)]
    seen, other = gpus([node("b"), node("a"), node("c")], [pod("digits-x", "digits"), pod("notebook")], slices, claims)
    assert (seen.node, seen.product, seen.memory_mib, seen.count) == ("a", "NVIDIA-H100-80GB-HBM3", 81559, 1)
    assert (seen.strategy, seen.closed) == ("dynamic", "")
    assert seen.resources == {WHOLE: 0, SMALL: 3, LARGE: 2}
    assert seen.pods == (GpuPod("default/digits-x", "default/digits", LARGE, 1, "digits-00001"),)
    assert other.pods == (GpuPod("default/notebook", "", SMALL, 1),)
    assert mig_nodes([seen, other]) == ()


def test_a_claim_without_its_pod_holds_its_device_and_an_administrators_holds_none() -> None:
    slices = whole("a", 3)
    claims = [
        claim("left", "gone", "gpu-0", node="a"),
        claim("watching", "monitor", "gpu-1", node="a", adminAccess=True),
    ]
    (seen,) = gpus([node("a")], [pod("monitor")], slices, claims)
    assert seen.pods == (GpuPod("default/left", "", WHOLE, 1),)
    assert free(slices, claims) == {WHOLE: 2}


def test_the_owner_of_a_claim_has_it_while_it_is_not_reserved() -> None:
    owned = claim("digits-gpu", "", "gpu-0", node="a")
    owned["metadata"]["ownerReferences"] = [{"kind": "Pod", "name": "digits-x", "uid": "1"}]
    (seen,) = gpus([node("a")], [pod("digits-x", "digits")], whole("a", 1), [owned])
    assert [each.service for each in seen.pods] == ["default/digits"]


def test_slices_that_an_administrator_cut_are_counted() -> None:
    (seen,) = gpus([node("a")], [], cut_ahead("a", ["1g.10gb", "1g.10gb+me", "3g.40gb"]), [])
    assert seen.resources == {SMALL: 1, f"{SMALL}.me": 1, LARGE: 1}
    assert (seen.strategy, seen.count) == ("static", 1)
    assert mig_nodes([seen]) == ()


def test_what_kubernetes_would_not_allocate_is_not_free() -> None:
    tainted = whole("a", 2, taints=[{"key": "gpu.nvidia.com/unhealthy", "effect": "NoExecute"}])
    assert free(tainted, []) == {WHOLE: 0}
    assert free(cut_by_claims("a", 1)[1:], []) == {}, "slices of the pool are still to come"
    (outdated,), (current,) = whole("a", 8), whole("a", 1)
    current["spec"]["pool"] = {**current["spec"]["pool"], "generation": 2}
    assert free([outdated, current], []) == {WHOLE: 1}
    assert free([{**current, "spec": {**current["spec"], "driver": "dra.example.com"}}], []) == {}
    (cordoned,) = gpus([node("a", unschedulable=True)], [], whole("a", 1), [])
    assert cordoned.closed == "is cordoned"


def test_other_products_of_a_node_and_other_devices_do_not_count() -> None:
    (mixed,) = whole("a", 2)
    (more,) = whole("a", 1, product="NVIDIA L40S")
    vfio = {"name": "gpu-vfio-0", "attributes": {"type": {"string": "vfio"}}}
    devices = [*mixed["spec"]["devices"], {**more["spec"]["devices"][0], "name": "gpu-9"}, vfio]
    mixed["spec"]["devices"] = devices
    (seen,) = gpus([node("a")], [], [mixed], [])
    assert (seen.product, seen.resources) == ("NVIDIA-A30", {WHOLE: 2})


def test_attributes_may_have_the_drivers_domain() -> None:
    (found,) = whole("a", 1)
    for each in found["spec"]["devices"]:
        each["attributes"] = {f"gpu.nvidia.com/{name}": value for name, value in each["attributes"].items()}
    (seen,) = gpus([node("a")], [], [found], [])
    assert (seen.product, seen.count) == ("NVIDIA-A30", 1)


def test_auto_chooses_what_claims_leave() -> None:
    slices = cut_by_claims("a", 1)
    (seen,) = gpus([node("a")], [], slices, [])
    chosen = automatic(Model(4 << 30), 7, [seen])
    assert isinstance(chosen, Chosen)
    assert chosen.accelerator == SMALL
    (rest,) = gpus([node("a")], [], slices, [claim("one", "", LARGE_0, node="a")])
    larger = automatic(Model(4 << 30), 4, [rest])
    assert isinstance(larger, NoRoom)
    assert larger.plan is None, "the driver cuts GPUs itself"
    assert isinstance(as_named(LARGE, 1, [rest]), Chosen)
    assert isinstance(as_named(WHOLE, 1, [rest]), NoRoom)
    leaving = replace(rest, pods=tuple(replace(each, service="default/digits") for each in rest.pods))
    assert isinstance(as_named(LARGE, 2, [leaving], leaving="default/digits"), Chosen)
