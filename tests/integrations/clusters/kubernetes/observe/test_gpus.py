"""GPUs as nodes and pods of the API server tell of them."""

from typing import Any

import pytest

from integrations.clusters.base import GpuPod, NodeGpus
from integrations.clusters.kubernetes.observe.gpus import gpus

LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": "2",
    "nvidia.com/mig.strategy": "mixed",
    "nvidia.com/mig.config": "custom",
    "nvidia.com/mig.config.state": "success",
}


def node(name: str, labels: dict[str, str], resources: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"allocatable": resources}}


def pod(name: str, on: str, limits: dict[str, str], *, phase: str = "Running", service: str = "") -> dict[str, Any]:
    labels = {"fairlead/service": service, "fairlead/revision": f"{service}-00001"} if service else {}
    metadata = {"namespace": "default", "name": name, "labels": labels}
    spec = {"nodeName": on, "containers": [{"resources": {"limits": limits}}, {}]}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def test_a_nodes_slices_and_who_has_them() -> None:
    resources = {"cpu": "8", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "14"}
    slice_ = {"nvidia.com/mig-1g.10gb": "1"}
    pods = [
        pod("digits-00001-x", "a", slice_, service="digits"),
        pod("notebook", "a", slice_),
        pod("done", "a", slice_, phase="Succeeded"),
        pod("elsewhere", "b", slice_),
        pod("none", "a", {"memory": "1Gi"}),
    ]
    (seen,) = gpus([node("b", {}, {"cpu": "4"}), node("a", LABELS, resources)], pods)
    assert seen == NodeGpus(
        node="a",
        product="NVIDIA-H100-80GB-HBM3",
        memory_mib=81559,
        count=2,
        strategy="mixed",
        config="custom",
        config_state="success",
        resources={"nvidia.com/gpu": 0, "nvidia.com/mig-1g.10gb": 14},
        pods=(
            GpuPod("default/digits-00001-x", "default/digits", "nvidia.com/mig-1g.10gb", 1, "digits-00001"),
            GpuPod("default/notebook", "", "nvidia.com/mig-1g.10gb", 1),
        ),
    )
    assert seen.taken("nvidia.com/mig-1g.10gb") == 2


def test_a_slice_that_a_pod_has_before_its_last_container_is_taken_to_its_end() -> None:
    resource = "nvidia.com/mig-1g.10gb"
    made = pod("fairlead-build-x", "a", {"memory": "1Gi"})
    made["spec"]["initContainers"] = [{}, {"resources": {"limits": {resource: "1"}}}]
    both = pod("both", "a", {resource: "2"})
    both["spec"]["initContainers"] = [{"resources": {"limits": {resource: "1"}}}]
    (seen,) = gpus([node("a", LABELS, {resource: "14"})], [made, both])
    assert [(each.name, each.count) for each in seen.pods] == [("default/both", 2), ("default/fairlead-build-x", 1)]


@pytest.mark.parametrize(
    ("resources", "labels", "sharers"),
    [
        pytest.param(
            {"nvidia.com/mig-1g.10gb.shared": "28"},
            {"nvidia.com/mig-1g.10gb.replicas": "4"},
            {"nvidia.com/mig-1g.10gb.shared": 4},
            id="under a name of its own",
        ),
        pytest.param({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu.replicas": "4"}, {"nvidia.com/gpu": 4}, id="as ever"),
        pytest.param({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu.replicas": "1"}, {}, id="by nobody"),
        pytest.param({"nvidia.com/gpu.shared": "8"}, {}, {}, id="by how many is not said"),
        pytest.param(
            {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "8"},
            {"nvidia.com/gpu.replicas": "4"},
            {"nvidia.com/gpu.shared": 4},
            id="with nothing left under the other name",
        ),
    ],
)
def test_how_many_pods_share(resources: dict[str, str], labels: dict[str, str], sharers: dict[str, int]) -> None:
    (seen,) = gpus([node("a", LABELS | labels | {"nvidia.com/gpu.sharing-strategy": "mps"}, resources)], [])
    assert (seen.sharers, seen.sharing) == (sharers, "mps")


@pytest.mark.parametrize(
    ("spec", "closed"),
    [
        ({"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, ""),
        ({"taints": [{"key": "maintenance", "effect": "NoSchedule"}]}, "has the taint maintenance"),
        ({"unschedulable": True}, "is cordoned"),
    ],
)
def test_the_vendors_own_taint_keeps_no_gpu_pod_out(spec: dict[str, Any], closed: str) -> None:
    (seen,) = gpus([node("a", LABELS, {"nvidia.com/gpu": "1"}, **spec)], [])
    assert seen.closed == closed
