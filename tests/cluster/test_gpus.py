"""Nodes with MIG slices: where the real scheduler puts pods that ask for them, and what the driver tells of that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deployments.placement.inventory import Use, gpu_node
from integrations.clusters.base import GpuPod
from integrations.clusters.kubernetes import kinds
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations.conftest import until

pytestmark = pytest.mark.cluster
_SLICE = "nvidia.com/mig-1g.10gb"
_LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": "1",
    "nvidia.com/mig.strategy": "mixed",
}
_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


@pytest.fixture
def cluster(plane: ControlPlane, tmp_path: Path) -> Iterator[Harness]:
    """A cluster with a GPU node beside its own, which nothing runs on: its pods stay Pending there."""
    with harness(plane, tmp_path) as running:
        _make_node(running, "gpu-node", {_SLICE: "4", "nvidia.com/mig-3g.40gb": "1"})
        yield running
        with running.plane.client() as client:
            client.delete(kinds.NODE.path("", "gpu-node")).raise_for_status()


def _make_node(running: Harness, name: str, slices: dict[str, str]) -> None:
    amounts = {"cpu": "64", "memory": "512Gi", "pods": "110", **slices}
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
    with running.plane.client() as client:
        body = {"metadata": {"name": name, "labels": _LABELS}}
        client.post(kinds.NODE.path(""), json={"apiVersion": "v1", "kind": "Node", **body}).raise_for_status()
        status = {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}}
        headers = {"content-type": "application/merge-patch+json"}
        client.patch(f"{kinds.NODE.path('', name)}/status", json=status, headers=headers).raise_for_status()
        taints = {"spec": {"taints": [_TAINT]}}  # in the place of not-ready, which nobody else removes
        client.patch(kinds.NODE.path("", name), json=taints, headers=headers).raise_for_status()


def _make_pod(running: Harness, name: str, **labels: str) -> None:
    container: dict[str, Any] = {"name": "main", "image": "none", "resources": {"limits": {_SLICE: "1"}}}
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}
    body["spec"] |= {"tolerations": tolerations, "terminationGracePeriodSeconds": 0}
    with running.plane.client() as client:
        place = kinds.POD.path("default")
        client.post(place, json={"apiVersion": "v1", "kind": "Pod", **body}).raise_for_status()


def test_slices_are_told_with_who_has_them(cluster: Harness) -> None:
    names = ("digits-00001-a", "digits-00001-b", "notebook")
    for name in names:
        _make_pod(cluster, name, **({} if name == "notebook" else {"fairlead/service": "digits"}))

    def seen() -> Any:
        (node,) = cluster.driver.inventory(with_nodes=True).gpus
        return gpu_node(node)

    try:
        until(lambda: len(seen().pods) == len(names), "the scheduler has put them on the node", 120)
        node = seen()
    finally:
        with cluster.plane.client() as client:
            for name in names:
                client.delete(kinds.POD.path("default", name)).raise_for_status()
    assert (node.name, node.product, node.strategy, node.note) == ("gpu-node", "H100-80GB", "mixed", "")
    assert node.uses == (Use(_SLICE, 4, 3), Use("nvidia.com/mig-3g.40gb", 1, 0))
    assert node.pods[0] == GpuPod("default/digits-00001-a", "default/digits", _SLICE, 1)
    assert node.pods[2].service == ""
    (gpu,) = node.gpus
    assert [(each.profile, each.start, each.taken) for each in gpu.slices] == [
        ("1g.10gb", 0, True),
        ("1g.10gb", 1, True),
        ("1g.10gb", 2, True),
        ("1g.10gb", 3, False),
        ("3g.40gb", 4, False),
    ]
