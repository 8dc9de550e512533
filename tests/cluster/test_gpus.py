"""Nodes with MIG slices: where the real scheduler puts pods that ask for them, and what the driver tells of that."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from integrations.clusters.base import Arrangement, Desired, DesiredRevision, GpuPod, Resources
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.driver import KubernetesDriver
from placement.inventory import Use, gpu_node
from placement.packing.assignment import Chosen, Model, NoRoom, as_named, automatic
from placement.slices.offers import offers
from tests.cluster._support.nodes import LARGE, SLICE, WHOLE, forget, make_node, make_pod, pods
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import until

pytestmark = pytest.mark.cluster
_SHARED = f"{SLICE}.shared"


@pytest.fixture
def cluster(plane: ControlPlane, tmp_path: Path) -> Iterator[Harness]:
    """A cluster with a GPU node beside its own, which nothing runs on: its pods stay Pending there."""
    with harness(plane, tmp_path) as running:
        make_node(running, "gpu-node", {SLICE: "4", "nvidia.com/mig-3g.40gb": "1"})
        yield running
        with running.plane.client() as client:
            client.delete(resource_types.NODE.path("", "gpu-node")).raise_for_status()


def test_slices_are_told_with_who_has_them(cluster: Harness) -> None:
    names = ("digits-00001-a", "digits-00001-b", "notebook")
    for name in names:
        make_pod(cluster, name, **({} if name == "notebook" else {"fairlead/service": "digits"}))

    def seen() -> Any:
        (node,) = cluster.driver.inventory(with_nodes=True).gpus
        return gpu_node(node)

    try:
        until(lambda: len(seen().pods) == len(names), "the scheduler has put them on the node", 120)
        node = seen()
    finally:
        with cluster.plane.client() as client:
            for name in names:
                client.delete(resource_types.POD.path("default", name)).raise_for_status()
    assert (node.name, node.product, node.strategy, node.note) == ("gpu-node", "H100-80GB", "mixed", "")
    assert node.uses == (Use(SLICE, 4, 3), Use("nvidia.com/mig-3g.40gb", 1, 0))
    assert node.pods[0] == GpuPod("default/digits-00001-a", "default/digits", SLICE, 1)
    assert node.pods[2].service == ""
    (gpu,) = node.gpus
    assert [(each.profile, each.start, each.taken) for each in gpu.slices] == [
        ("1g.10gb", 0, True),
        ("1g.10gb", 1, True),
        ("1g.10gb", 2, True),
        ("1g.10gb", 3, False),
        ("3g.40gb", 4, False),
    ]


@pytest.fixture
def several(cluster: Harness) -> Iterator[Harness]:
    """The cluster with nodes of other products and strategies, too: all slices called whole GPUs, uncut, and shared."""
    made = {
        "gpu-node-single": ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb", "single", "4864", {WHOLE: "7"}),
        "gpu-node-uncut": ("NVIDIA-A30", "none", "24576", {WHOLE: "2"}),
    }
    for name, (product, strategy, memory, offered) in made.items():
        make_node(cluster, name, offered, gpu_product=product, mig_strategy=strategy, gpu_memory=memory)
    make_node(cluster, "gpu-node-shared", {_SHARED: "8"}, **{"mig-1g.10gb.replicas": "4"})
    yield cluster
    with cluster.plane.client() as client:
        for name in (*made, "gpu-node-shared"):
            client.delete(resource_types.NODE.path("", name)).raise_for_status()


_A30, _A100 = ("NVIDIA-A30",), ("NVIDIA-A100-SXM4-40GB-MIG-1g.5gb",)
_ASKED = {  # by service: GiB that were measured, replicas, and what is promised: resource, products, node
    "tiny": (0.5, 8, _SHARED, (), "gpu-node-shared"),
    "small": (1, 7, WHOLE, _A100, "gpu-node-single"),
    "middling": (5, 4, SLICE, (), "gpu-node"),
    "large": (15, 2, WHOLE, _A30, "gpu-node-uncut"),
}


def _desired(running: Harness, service: str, replicas: int, resources: Resources) -> Desired:
    artifact = running.store(service.encode())
    revision = DesiredRevision(
        name=f"{service}-00001",
        model_name=service,
        model_version="1",
        artifact_uri=artifact.uri,
        artifact_digest=artifact.digest,
        replicas=replicas,
        weight_percent=100,
        resources=resources,
    )
    return Desired("default", service, 1, (revision,))


@pytest.mark.parametrize("arrangement", Arrangement)
def test_replicas_are_apart_or_together_as_the_planner_expects(cluster: Harness, arrangement: Arrangement) -> None:
    names = ("gpu-node", "gpu-node-b", "gpu-node-c")
    driver = KubernetesDriver(cluster.api, replace(cluster.options, gpu_runtime_image="fairlead/runtime:cuda"))
    for name in names[1:]:
        make_node(cluster, name, {SLICE: "4"})
    try:
        found = as_named(SLICE, 3, driver.inventory(with_nodes=True).gpus, arrangement=arrangement)
        assert isinstance(found, Chosen)
        desired = _desired(cluster, "arranged", 3, Resources(0.1, 1 << 20, SLICE))
        (revision,) = desired.revisions
        driver.apply(replace(desired, revisions=(replace(revision, arrangement=arrangement),)))

        def nodes() -> list[str]:
            return sorted(each["spec"].get("nodeName", "") for each in pods(cluster, "arranged"))

        until(lambda: len(nodes()) == 3 and all(nodes()), "all replicas have a node", 120)
        if arrangement is Arrangement.SPREAD:
            assert nodes() == list(names)
            assert found.why.endswith("spread, 1 on gpu-node, 1 on gpu-node-b, 1 on gpu-node-c")
        else:
            assert len(set(nodes())) == 1
            assert "pack, 3 on gpu-node" in found.why
    finally:
        forget(cluster, "arranged")
        with cluster.plane.client() as client:
            for name in names[1:]:
                client.delete(resource_types.NODE.path("", name)).raise_for_status()


def test_the_scheduler_puts_replicas_where_the_planner_says(several: Harness) -> None:
    driver = KubernetesDriver(several.api, replace(several.options, gpu_runtime_image="fairlead/runtime:cuda"))

    def seen() -> Any:
        return driver.inventory(with_nodes=True).gpus

    try:
        for service, (measured_gib, replicas, resource, products, node) in _ASKED.items():
            found = automatic(Model(int(measured_gib * (1 << 30)), shares=service == "tiny"), replicas, seen())
            assert isinstance(found, Chosen)
            assert (found.accelerator, found.products) == (resource, products)
            driver.apply(_desired(several, service, replicas, Resources(0.1, 1 << 20, resource, products)))

            def nodes(service: str = service) -> list[str]:
                return [each["spec"].get("nodeName", "") for each in pods(several, service)]

            until(lambda node=node, count=replicas: nodes() == [node] * count, f"all of {service} are on {node}", 120)
        free = {(each.node, each.resource): each.free for each in offers(seen())}
        assert free == {
            ("gpu-node", SLICE): 0,
            ("gpu-node", LARGE): 1,
            ("gpu-node-shared", _SHARED): 0,
            ("gpu-node-single", WHOLE): 0,
            ("gpu-node-uncut", WHOLE): 0,
        }
        assert isinstance(as_named(WHOLE, 1, seen()), NoRoom)
        assert isinstance(automatic(Model(15 << 30), 1, seen()), Chosen)
        driver.apply(_desired(several, "late", 1, Resources(0.1, 1 << 20, WHOLE)))
        why = f"Insufficient {WHOLE}"
        until(lambda: why in str(pods(several, "late")[:1]), "the scheduler finds no room for it either", 120)
    finally:
        for service in (*_ASKED, "late"):
            forget(several, service)


def test_the_cut_that_would_make_room_is_planned_on_a_free_node(several: Harness) -> None:
    found = as_named(LARGE, 2, several.driver.inventory(with_nodes=True).gpus)
    assert isinstance(found, NoRoom)
    assert found.plan is not None
    assert (found.plan.node, found.plan.after) == ("gpu-node", ((("3g.40gb", 2),),))
