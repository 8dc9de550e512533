"""What tests leave on a control plane: of a release of the chart, and of the whole cluster."""

from typing import Any

import httpx

from tests.cluster.plane import ControlPlane

_NAMESPACED = {
    "/api/v1": ("services", "pods", "secrets", "configmaps", "serviceaccounts", "persistentvolumeclaims"),
    "/apis/apps/v1": ("deployments", "statefulsets", "replicasets"),
    "/apis/batch/v1": ("jobs",),
    "/apis/policy/v1": ("poddisruptionbudgets",),
    "/apis/networking.k8s.io/v1": ("networkpolicies", "ingresses"),
    "/apis/rbac.authorization.k8s.io/v1": ("roles", "rolebindings"),
}
_RBAC = "/apis/rbac.authorization.k8s.io/v1"


def remains(api: httpx.Client, release: str, namespace: str) -> set[tuple[str, str]]:
    """Return kind and name of whatever is of a release, or in its namespace and not Kubernetes' own."""
    found = {
        (kind, each["metadata"]["name"])
        for root, kinds in _NAMESPACED.items()
        for kind in kinds
        for each in _items(api, f"{root}/namespaces/{namespace}/{kind}")
        if "deletionTimestamp" not in each["metadata"]
    }
    found |= {
        (kind, each["metadata"]["name"])
        for kind in ("clusterroles", "clusterrolebindings", "rolebindings")
        for each in _items(api, f"{_RBAC}/{kind}", labelSelector=f"app.kubernetes.io/instance={release}")
    }
    return found - {("serviceaccounts", "default"), ("configmaps", "kube-root-ca.crt")}


def of_the_whole_cluster(plane: ControlPlane) -> set[str]:
    """Return what belongs to no namespace and has a name that others may need, as `nodes/gpu-0`."""
    kinds = {"nodes": "/api/v1", "clusterroles": _RBAC, "clusterrolebindings": _RBAC}
    with plane.client() as api:
        return {
            f"{kind}/{each['metadata']['name']}"
            for kind, root in kinds.items()
            for each in _items(api, f"{root}/{kind}")
            if "deletionTimestamp" not in each["metadata"]
        }


def _items(api: httpx.Client, path: str, **query: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get(path, params=query).raise_for_status().json()["items"]
    return items
