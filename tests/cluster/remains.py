"""What is left of a release of the chart."""

from typing import Any

import httpx

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


def _items(api: httpx.Client, path: str, **query: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = api.get(path, params=query).raise_for_status().json()["items"]
    return items
