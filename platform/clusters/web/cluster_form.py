"""Form of a cluster file: the fields that every cluster needs, in groups; the file itself has the rest. Pure."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from clusters.domain.cluster_file import KIND, STORED
from common.files.editor.form import Field, Filled, changed, filled


@dataclass(frozen=True, slots=True)
class Group:
    """Fields of one subject."""

    title: str
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Form:
    """The form as a file fills it.

    Attributes:
        groups: title and fields of each group.
        way: how the cluster is reached: kubeconfig, path or inCluster.
        path: of the mounted kubeconfig; may be empty.
    """

    groups: list[tuple[str, list[Filled]]]
    way: str
    path: str


NAME = Group("Identity", (Field("name", "Name", ("name",), "text", "small letters, digits and hyphens"),))
GROUPS = (
    Group(
        "Gateway",
        (
            Field("gateway_url", "Gateway URL", ("gateway", "url"), "text", "such as https://models.example.com"),
            Field("gateway_name", "Gateway", ("gateway", "name"), "text", "that routes attach to"),
            Field("gateway_namespace", "Gateway namespace", ("gateway", "namespace"), "text", "such as gateways"),
            Field("domain", "Domain", ("domain",), "text", "of hosts SERVICE.NAMESPACE.DOMAIN; empty for paths"),
        ),
    ),
    Group(
        "Runtime and artifacts",
        (
            Field("runtime_image", "Runtime image", ("runtimeImage",), "text", "pinned by its digest"),
            Field("gpu_runtime_image", "Runtime image with CUDA", ("gpuRuntimeImage",), "text", "empty without GPUs"),
            Field(
                "artifacts",
                "Artifact source",
                ("artifacts", "from"),
                "choice",
                "a volume, this registry, the origin of each model, or a bucket with copies",
                ("claim", "registry", "origin", "bucket"),
            ),
            Field(
                "claim",
                "Volume claim",
                ("artifacts", "claim"),
                "text",
                "with the model files, in each service's namespace",
            ),
            Field(
                "root", "Artifacts folder", ("artifacts", "root"), "text", "where the control plane mounts that volume"
            ),
            Field(
                "bucket",
                "Bucket",
                ("artifacts", "bucket"),
                "text",
                "for copies of models, such as s3://models/fairlead",
            ),
            Field(
                "control_plane_url",
                "Control plane URL",
                ("controlPlaneUrl",),
                "text",
                "as pods reach it, for downloads and uploads",
            ),
        ),
    ),
)
BEGIN: dict[str, Any] = {
    "name": "",
    "kind": KIND,
    "connection": {"kubeconfig": STORED},
    "gateway": {},
    "artifacts": {"from": "claim"},
}
"""The initial file."""


def form_of(document: Mapping[str, Any], *, is_new: bool) -> Form:
    """Return the form as the file fills it; an existing cluster keeps its name."""
    connection = _connection(document)
    groups = [(group.title, filled(document, group.fields)) for group in _groups(is_new)]
    return Form(groups, _way(connection), str(connection.get("kubeconfigPath", "")))


def with_form(document: Mapping[str, Any], said: Mapping[str, str], *, is_new: bool) -> dict[str, Any]:
    """Return the file with the form's fields, which have no part of a kubeconfig; other fields stay."""
    after = changed(document, tuple(field for group in _groups(is_new) for field in group.fields), said)
    before = _connection(document)
    way = said.get("way", _way(before))
    path = said.get("path", str(before.get("kubeconfigPath", ""))).strip()
    if way == _way(before) and (way != "path" or path == before.get("kubeconfigPath")):
        return after
    kept = {name: value for name, value in before.items() if name == "context"}
    if way == "inCluster":
        after["connection"] = {"inCluster": True}
    else:
        after["connection"] = {**kept, "kubeconfigPath": path} if way == "path" else {**kept, "kubeconfig": STORED}
    return after


def with_kubeconfig(document: Mapping[str, Any], kubeconfig: str) -> dict[str, Any]:
    """Return the file with a kubeconfig given separately; an empty one leaves it as it is."""
    after: dict[str, Any] = copy.deepcopy(dict(document))
    connection = after.get("connection")
    if kubeconfig.strip() and (connection is None or (isinstance(connection, dict) and "inCluster" not in connection)):
        kept = {name: value for name, value in (connection or {}).items() if name == "context"}
        after["connection"] = {**kept, "kubeconfig": kubeconfig}
    return after


def _groups(is_new: bool) -> tuple[Group, ...]:
    return (NAME, *GROUPS) if is_new else GROUPS


def _connection(document: Mapping[str, Any]) -> Mapping[str, Any]:
    connection = document.get("connection")
    return connection if isinstance(connection, Mapping) else {}


def _way(connection: Mapping[str, Any]) -> str:
    return "inCluster" if "inCluster" in connection else "path" if "kubeconfigPath" in connection else "kubeconfig"
