"""What NVIDIA's MIG manager does to a node, for nodes that a test wrote into a control plane."""

from collections.abc import Container

import yaml

from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.apply.gpu_nodes import CONFIG_MAP, KEY
from tests.cluster.plane import ControlPlane

_MERGE = {"content-type": "application/merge-patch+json"}
_SLICE = "nvidia.com/mig-"


def mig_manager(plane: ControlPlane, node: str, fails: Container[str] = ()) -> None:
    """Do what the node's label asks, as the file in `default` has it: other slices, and the label that tells of it.

    Args:
        fails: configurations that cannot be made.
    """
    with plane.client() as client:
        seen = client.get(resource_types.NODE.path("", node)).raise_for_status().json()
        labels = seen["metadata"]["labels"]
        if labels["nvidia.com/mig.config.state"] != "pending":
            return
        file = client.get(resource_types.CONFIG_MAP.path("default", CONFIG_MAP)).raise_for_status().json()["data"][KEY]
        entry = yaml.safe_load(file)["mig-configs"].get(labels["nvidia.com/mig.config"])
        state = "failed" if entry is None or labels["nvidia.com/mig.config"] in fails else "success"
        if state == "success":
            slices = {f"{_SLICE}{name}": str(count) for name, count in entry[0]["mig-devices"].items()}
            gone = {name: None for name in seen["status"]["allocatable"] if name.startswith(_SLICE)}
            amounts = {**gone, **slices}
            status = {"status": {"capacity": amounts, "allocatable": amounts}}
            client.patch(f"{resource_types.NODE.path('', node)}/status", json=status, headers=_MERGE).raise_for_status()
        answer = {"metadata": {"labels": {"nvidia.com/mig.config.state": state}}}
        client.patch(resource_types.NODE.path("", node), json=answer, headers=_MERGE).raise_for_status()
