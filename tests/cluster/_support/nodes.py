"""Nodes with GPUs and pods on them, without a kubelet."""

from typing import Any

from integrations.clusters.kubernetes.api import resource_types
from tests.cluster._support.removal import is_removed
from tests.cluster.harness import Harness
from tests.integrations._support.runtimes import until

SLICE, LARGE, WHOLE = "nvidia.com/mig-1g.10gb", "nvidia.com/mig-3g.40gb", "nvidia.com/gpu"


_LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": "1",
    "nvidia.com/mig.strategy": "mixed",
}


_TAINT = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}


def make_node(running: Harness, name: str, slices: dict[str, str], **labels: str) -> None:
    amounts = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110", **slices}
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
    with running.plane.client() as client:
        own = {"kubernetes.io/hostname": name}  # as a kubelet labels its node
        own |= {f"nvidia.com/{label.replace('_', '.')}": value for label, value in labels.items()}
        body = {"metadata": {"name": name, "labels": _LABELS | own}}
        client.post(resource_types.NODE.path(""), json={"apiVersion": "v1", "kind": "Node", **body}).raise_for_status()
        status = {"status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}}
        headers = {"content-type": "application/merge-patch+json"}
        client.patch(f"{resource_types.NODE.path('', name)}/status", json=status, headers=headers).raise_for_status()
        taints = {"spec": {"taints": [_TAINT]}}  # in the place of not-ready, which nobody else removes
        client.patch(resource_types.NODE.path("", name), json=taints, headers=headers).raise_for_status()


def make_pod(running: Harness, name: str, **labels: str) -> None:
    container: dict[str, Any] = {"name": "main", "image": "none", "resources": {"limits": {SLICE: "1"}}}
    tolerations = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}}
    body["spec"] |= {"tolerations": tolerations, "terminationGracePeriodSeconds": 0}
    with running.plane.client() as client:
        place = resource_types.POD.path("default")
        client.post(place, json={"apiVersion": "v1", "kind": "Pod", **body}).raise_for_status()


def pods(running: Harness, service: str) -> list[Any]:
    return running.api.list(resource_types.POD, "default", {"fairlead/service": service})


def forget(running: Harness, service: str) -> None:
    """Remove a service whose pods no kubelet ends."""

    def is_gone() -> bool:
        removed = is_removed(running.driver, service, 2)
        with running.plane.client() as client:
            for pod in pods(running, service):
                name = pod["metadata"]["name"]
                client.request("DELETE", resource_types.POD.path("default", name), json={"gracePeriodSeconds": 0})
        return removed

    until(is_gone, f"nothing of {service} is left", 120)
