"""The fields of a cluster file that every cluster needs, as a form; all else is said in the file itself. Pure."""

import copy
from collections.abc import Mapping
from typing import Any

from deployments.cluster_file import KIND, STORED
from deployments.service_form import Field, changed

FIELDS = (
    Field("name", "Name", ("name",), "text", "small letters, digits and hyphens"),
    Field("gateway_url", "Clients call", ("gateway", "url"), "text", "such as https://models.example.com"),
    Field("gateway_name", "Gateway", ("gateway", "name"), "text", "that routes attach to"),
    Field("gateway_namespace", "Its namespace", ("gateway", "namespace"), "text", "such as gateways"),
    Field("runtime_image", "Runtime image", ("runtimeImage",), "text", "pinned by its digest"),
    Field("gpu_runtime_image", "Runtime image with CUDA", ("gpuRuntimeImage",), "text", "empty without GPUs"),
    Field("artifacts", "Model files from", ("artifacts", "from"), "choice", "", ("claim", "registry", "origin")),
    Field("claim", "Claim with the files", ("artifacts", "claim"), "text", "of each service's namespace"),
    Field("root", "Its root here", ("artifacts", "root"), "text", "a folder of the control plane"),
    Field("control_plane_url", "Pods reach this at", ("controlPlaneUrl",), "text", "for what they fetch and bring"),
)
BEGIN: dict[str, Any] = {
    "name": "production",
    "kind": KIND,
    "connection": {"kubeconfig": STORED},
    "gateway": {"url": "https://models.example.com", "name": "models", "namespace": "gateways"},
    "runtimeImage": "registry.example.com/fairlead/serving-runtime@sha256:...",
    "artifacts": {"claim": "models", "root": "/var/lib/fairlead/artifacts"},
}
"""What the text begins with that nobody has typed yet."""


def document_said(said: Mapping[str, str]) -> dict[str, Any]:
    """Return the cluster file that the form says, without its kubeconfig."""
    connection: dict[str, Any] = {"kubeconfig": STORED}
    if said.get("way") == "inCluster":
        connection = {"inCluster": True}
    elif said.get("way") == "path":
        connection = {"kubeconfigPath": said.get("path", "").strip()}
    document: dict[str, Any] = {"name": "", "kind": KIND, "connection": connection, "gateway": {}, "artifacts": {}}
    return changed(document, FIELDS, said)


def with_kubeconfig(document: Mapping[str, Any], kubeconfig: str) -> dict[str, Any]:
    """Return the file with a kubeconfig that was given beside it; an empty one leaves it as it is."""
    after: dict[str, Any] = copy.deepcopy(dict(document))
    connection = after.get("connection")
    if kubeconfig.strip() and (connection is None or (isinstance(connection, dict) and "inCluster" not in connection)):
        kept = {name: value for name, value in (connection or {}).items() if name == "context"}
        after["connection"] = {**kept, "kubeconfig": kubeconfig}
    return after
