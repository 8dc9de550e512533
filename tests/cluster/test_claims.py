"""GPUs that pods claim (Dynamic Resource Allocation): the real API server, controllers and scheduler allocate them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from integrations.clusters.base import Desired, DesiredRevision, Finding, Resources
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.driver import KubernetesDriver
from integrations.clusters.kubernetes.options import GpuAllocation
from placement.inventory import Use, gpu_node
from placement.packing.assignment import Chosen, Model, automatic
from tests.cluster._support.nodes import LARGE, SLICE, WHOLE, forget, make_node, pods
from tests.cluster.harness import Harness, harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.devices import classes, cut_by_claims, whole
from tests.integrations._support.runtimes import until

pytestmark = pytest.mark.cluster
_KINDS = {"DeviceClass": resource_types.DEVICE_CLASS, "ResourceSlice": resource_types.RESOURCE_SLICE}
_A30 = ("NVIDIA-A30",)
_CHOSEN = (  # GiB that were measured, replicas, and what is chosen, the products that pods are bound to, and their node
    ("large", 28, 2, LARGE, (), "cut"),
    ("small", 10, 1, WHOLE, _A30, "uncut"),
)


@pytest.fixture
def cluster(plane: ControlPlane, tmp_path: Path) -> Iterator[Harness]:
    """A cluster whose GPU nodes offer no extended resources: `cut` has an H100 cut by claims, `uncut` an A30."""
    with harness(plane, tmp_path) as running:
        nodes = ("cut", "uncut")
        for name in nodes:
            make_node(running, name, {})
        yield running
        with running.plane.client() as client:
            for name in nodes:
                client.delete(resource_types.NODE.path("", name)).raise_for_status()
            for made in (*classes(), *cut_by_claims("cut", 1), *whole("uncut", 1)):
                client.delete(_KINDS[made["kind"]].path("", made["metadata"]["name"]))


def _create(client: httpx.Client, made: dict[str, Any]) -> None:
    path = f"{_KINDS[made['kind']].path('')}?fieldValidation=Strict"
    client.post(path, json=made).raise_for_status()


def _finding(driver: KubernetesDriver) -> Finding:
    return next(each for each in driver.findings(()) if each.about == "claims of GPUs")


def _desired(running: Harness, service: str, replicas: int, resources: Resources) -> Desired:
    stored = running.store(service.encode())
    revision = DesiredRevision(
        f"{service}-00001", service, "1", stored.uri, stored.digest, replicas, 100, resources=resources
    )
    return Desired("default", service, 1, (revision,))


def _allocated(running: Harness) -> list[str]:
    claims = running.api.list(resource_types.CLAIM, "default", {})
    results = [each.get("status", {}).get("allocation", {}).get("devices", {}).get("results", []) for each in claims]
    return sorted(one["device"] for found in results for one in found)


def test_pods_claim_what_auto_chose_and_the_scheduler_allocates_it(cluster: Harness) -> None:
    options = replace(cluster.options, gpu_runtime_image="fairlead/runtime:cuda", gpu_allocation=GpuAllocation.CLAIMS)
    driver = KubernetesDriver(cluster.api, options)

    def seen() -> Any:
        return driver.inventory(with_nodes=True).gpus

    assert _finding(driver).message.endswith("has no DeviceClass gpu.nvidia.com and no DeviceClass mig.nvidia.com")
    with cluster.plane.client() as client:
        for made in (*classes(), *cut_by_claims("cut", 1), *whole("uncut", 1)):
            _create(client, made)
    assert _finding(driver).ok

    try:
        for service, gib, count, resource, products, node in _CHOSEN:
            found = automatic(Model(gib << 30), count, seen())
            assert isinstance(found, Chosen)
            assert found.accelerator == resource
            driver.apply(_desired(cluster, service, count, Resources(0.1, 1 << 20, resource, products)))

            def nodes(service: str = service) -> list[str]:
                return [each["spec"].get("nodeName", "") for each in pods(cluster, service)]

            until(lambda node=node, count=count: nodes() == [node] * count, f"all of {service} are on {node}", 60)
        assert _allocated(cluster) == ["gpu-0", "gpu-0-mig-3g40gb-9-0", "gpu-0-mig-3g40gb-9-4"]
        cut, uncut = (gpu_node(each) for each in seen())
        assert cut.uses == (Use(LARGE, 2, 2),)
        assert [pod.service for pod in cut.pods] == ["default/large"] * 2
        assert uncut.uses == (Use(WHOLE, 1, 1),)

        driver.apply(_desired(cluster, "late", 1, Resources(0.1, 1 << 20, SLICE)))
        why = "cannot allocate all claims"
        until(lambda: why in str(pods(cluster, "late")[:1]), "nothing is left for a third", 60)
        assert driver.apply(_desired(cluster, "late", 1, Resources(0.1, 1 << 20, SLICE))) == []
        driver.apply(replace(_desired(cluster, "late", 1, Resources()), generation=2, revisions=()))
        templates = cluster.api.list(resource_types.CLAIM_TEMPLATE, "default", {})
        assert [each["metadata"]["name"] for each in templates] == ["large-00001", "small-00001"]
    finally:
        for service in ("large", "small", "late"):
            forget(cluster, service)
    assert cluster.api.list(resource_types.CLAIM_TEMPLATE, "default", {}) == []
    until(lambda: _allocated(cluster) == [], "no claim is left", 60)
