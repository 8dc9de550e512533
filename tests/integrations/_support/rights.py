"""What a user may do on a cluster: by its access reviews, and by a watch."""

import asyncio

import httpx

from integrations.clusters.kubernetes.access import KubeconfigFile
from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.api.watching import WatchingApi
from integrations.clusters.kubernetes.manifests.names import MANAGED
from tests.cluster.plane import ControlPlane


def may(client: httpx.Client, user: str, verb: str, group: str, resource: str, namespace: str, name: str = "") -> bool:
    resource, _, subresource = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": resource, "subresource": subresource, "namespace": namespace}
    asked |= {"name": name} if name else {}
    review = {"spec": {"user": user, "resourceAttributes": asked}}
    answer = client.post("/apis/authorization.k8s.io/v1/subjectaccessreviews", json=review)
    answer.raise_for_status()
    return bool(answer.json()["status"]["allowed"])


def watch(plane: ControlPlane, user: str, namespace: str, kind: resource_types.Kind) -> None:
    """List a kind and watch it from there; raises NotPermitted."""
    asyncio.run(_watch(KubeconfigFile(plane.user(user)), namespace, kind))


async def _watch(access: KubeconfigFile, namespace: str, kind: resource_types.Kind) -> None:
    api, since = WatchingApi(access), ""
    async for _, version in api.pages(kind, namespace, MANAGED):
        since = version
    async for event in api.events(kind, namespace, MANAGED, since):
        assert event is None, "the stream has begun"
        break
    await api.close()
