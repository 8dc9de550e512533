"""Pages about clusters, followed on a real API server with its scheduler, beside the embedded platform."""

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from integrations.clusters.kubernetes.api import resource_types
from tests.cluster import binaries
from tests.cluster.harness import IMAGE
from tests.cluster.plane import ControlPlane
from tests.e2e.harness import until
from tests.e2e.kubernetes import CLUSTER, KubernetesPlatform, on_kubernetes
from tests.runbooks.following import ROOT, Shell, followed, tool
from tests.servers.parts import MissingPartError, skip_or_fail

pytestmark = [pytest.mark.cluster, pytest.mark.e2e]
NODE, SLICE = "gpu-7", "nvidia.com/mig-1g.10gb"
TEAM = "team-vision"
ROLES = "platform/integrations/clusters/kubernetes/role.yaml"
_DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments"
_PATCH = {"content-type": "application/merge-patch+json"}
LABELS = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.count": "1",
    "nvidia.com/mig.strategy": "mixed",
}


@pytest.fixture(scope="module")
def platform(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KubernetesPlatform]:
    with on_kubernetes(plane, tmp_path_factory.mktemp("runbooks")) as running, plane.client() as client:
        client.post("/api/v1/namespaces", json={"metadata": {"name": TEAM}}).raise_for_status()
        yield running
        client.delete(f"/api/v1/namespaces/{TEAM}")


@pytest.fixture
def shell(platform: KubernetesPlatform, plane: ControlPlane) -> Shell:
    folder = platform.home.parent
    try:
        tool(folder / "tools" / "kubectl", ["env", f"KUBECONFIG={plane.kubeconfig}", str(binaries.kubectl())])
    except MissingPartError as missing:
        skip_or_fail(missing)
    tool(folder / "tools" / "fairlead", [sys.executable, "-m", "fairlead_cli"])
    return Shell(folder, platform.environment | {"PATH": f"{folder / 'tools'}:{os.environ['PATH']}"})


@pytest.fixture
def administrator(shell: Shell) -> Iterator[Shell]:
    """Who adds a cluster; what they make for the whole cluster goes afterwards."""
    (shell.folder / "platform").symlink_to(ROOT / "platform")
    yield shell
    bindings = " ".join(f"fairlead-access-control-plane-driver-{role}" for role in ("gateways", "identity", "nodes"))
    shell.run(f"kubectl delete --ignore-not-found -f {ROLES}")
    shell.run(f"kubectl delete --ignore-not-found clusterrolebinding {bindings}")
    shell.run("kubectl delete --ignore-not-found --wait=false namespace fairlead-access")


def test_a_cluster_is_added(platform: KubernetesPlatform, administrator: Shell) -> None:
    shell = administrator
    gateway = platform.harness.gateway.reference
    filled = {
        "name: production": "name: added",
        "clusters join production": "clusters join added",
        "clusters check production": "clusters check added",
        "vision": TEAM,
        "https://models.example.com": platform.harness.gateway.url,
        "name: models, namespace: gateways": f"name: {gateway.name}, namespace: {gateway.namespace}",
        "registry.example.com/fairlead/serving-runtime@sha256:...": IMAGE,
        "/var/lib/fairlead/artifacts": str(platform.harness.artifacts.folder),
    }
    with followed("how-to/add-a-cluster.md", shell, filled) as page:
        assert "kind: ServiceAccount" in page.follow(2)
        assert "added" not in shell.run("fairlead clusters list"), "printing changes nothing"
        assert "API server" in page.follow()
        said = page.follow()
    assert TEAM in said
    assert "not ok" not in said
    assert "added" in shell.run("fairlead clusters list")


@pytest.fixture
def gpu_node(plane: ControlPlane) -> Iterator[None]:
    """A node that a pod of a Deployment has a slice of; it has no kubelet, so that the pod never starts."""
    node_comes(plane)
    wish_for_a_slice(plane)
    yield
    with plane.client() as client:
        client.delete(f"{_DEPLOYMENT}/wishes").raise_for_status()


def node_comes(plane: ControlPlane) -> None:
    """Make the node, as its kubelet, the device plugin and GPU Feature Discovery would."""
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
    amounts = {"cpu": "64", "memory": "512Gi", "ephemeral-storage": "1Ti", "pods": "110", SLICE: "4"}
    with plane.client() as client:
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE, "labels": LABELS}}
        client.post(resource_types.NODE.path(""), json=node).raise_for_status()
        for place, change in (
            (f"{resource_types.NODE.path('', NODE)}/status", {"status": {"allocatable": amounts, "capacity": amounts}}),
            (f"{resource_types.NODE.path('', NODE)}/status", {"status": {"conditions": [ready]}}),
            (resource_types.NODE.path("", NODE), {"spec": {"taints": None}}),
        ):
            client.patch(place, json=change, headers=_PATCH).raise_for_status()


def wish_for_a_slice(plane: ControlPlane) -> None:
    """Make a Deployment whose pod takes a slice, and goes at once when it is told to."""
    container: dict[str, Any] = {"name": "main", "image": "none", "resources": {"limits": {SLICE: "1"}}}
    labels = {"app": "wishes"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container], "terminationGracePeriodSeconds": 0}}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    with plane.client() as client:
        client.post(_DEPLOYMENT, json={"metadata": {"name": "wishes"}, "spec": spec}).raise_for_status()
    until(lambda: node_of_the_wish(plane) == NODE, 300, "a pod on the node")


def node_of_the_wish(plane: ControlPlane) -> str | None:
    """Return the node of the one pod that wants a slice; empty while it waits for room, None without such a pod."""
    with plane.client() as client:
        answer = client.get(
            resource_types.POD.path("default"), params={"labelSelector": "app=wishes"}
        ).raise_for_status()
    nodes = [
        each["spec"].get("nodeName", "")
        for each in answer.json()["items"]
        if "deletionTimestamp" not in each["metadata"]
    ]
    return str(nodes[0]) if len(nodes) == 1 else None


@pytest.mark.usefixtures("gpu_node")
def test_a_gpu_node_comes_goes_and_is_lost(plane: ControlPlane, shell: Shell) -> None:
    filled = {
        "clusters check here --namespace vision": f"clusters check {CLUSTER} --namespace default",
        "clusters gpus here": f"clusters gpus {CLUSTER}",
        "-n vision": "-n default",
    }
    with followed("runbooks/gpu-nodes.md", shell, filled) as page:
        assert SLICE in page.follow()
        assert LABELS["nvidia.com/gpu.product"] in page.follow()
        assert "not ok" not in page.follow()
        assert NODE in page.follow()
        page.follow()
        assert "wishes" in page.follow()
        page.follow()
        until(lambda: node_of_the_wish(plane) == "", 300, "a pod that waits for room elsewhere")
        page.follow()
    with plane.client() as client:
        assert client.get(resource_types.NODE.path("", NODE)).status_code == 404
