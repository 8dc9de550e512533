"""The whole platform with its services on a Kubernetes cluster, which `tests/cluster/harness.py` gives."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.manifests.names import REPLAY, REVISION
from tests.cluster._support.gateway.gateway import Gateway
from tests.cluster.harness import CLAIM, IMAGE, Harness, harness
from tests.cluster.plane import ControlPlane
from tests.e2e.harness import Platform

CLUSTER = "production"


@dataclass(kw_only=True)
class KubernetesPlatform(Platform):
    """A platform, and the cluster that its services run on."""

    harness: Harness

    def replicas(self, revision: str) -> int:
        """Return how many pods there are."""
        with self.harness.plane.client() as client:
            pods = client.get(resource_types.POD.path("default"), params={"labelSelector": f"{REVISION}={revision}"})
        return len(pods.json()["items"])

    def pid(self, revision: str) -> int:
        """Return the process of the revision's only pod."""
        return self.harness.kubelet.pod(revision).pid("runtime")

    def hanging_copies(self, revision: str) -> int:
        """Return how many copies of requests the gateway has sent to a shadow that were not answered."""
        assert isinstance(self.harness.gateway, Gateway)
        return self.harness.gateway.requests_under_way("default", revision)

    def candidates(self) -> list[str]:
        """Return the pods that answer recorded requests."""
        with self.harness.plane.client() as client:
            pods = client.get(resource_types.POD.path("default"), params={"labelSelector": REPLAY})
        return [each["metadata"]["name"] for each in pods.json()["items"]]


@contextmanager
def on_kubernetes(plane: ControlPlane, folder: Path, **variables: str) -> Iterator[KubernetesPlatform]:
    """Give a running platform that knows the cluster by a kubeconfig which its operator mounted.

    Args:
        variables: more of the platform's environment.
    """
    (folder / "cluster").mkdir()
    with harness(plane, folder / "cluster") as running:
        made = KubernetesPlatform(
            folder / ".fairlead",
            variables={
                **variables,
                "FAIRLEAD_KUBECONFIG_FOLDER": str(plane.folder),
                "FAIRLEAD_ARTIFACTS_FOLDER": str(running.artifacts.folder),
            },
            cluster=CLUSTER,
            cluster_gateway=urlsplit(running.gateway.url).netloc,
            harness=running,
        )
        made.start()
        try:
            file = _cluster_file(running, made.url)
            made.change(
                "from django.utils import timezone\nfrom clusters.services.clusters import cluster_apply\n"
                f"cluster_apply(document={file!r}, name=None, actor='test', now=timezone.now())"
            )
            yield made
        finally:
            made.stop()


def _cluster_file(running: Harness, control_plane_url: str) -> dict[str, object]:
    gateway = running.options.gateway
    return {
        "name": CLUSTER,
        "kind": "kubernetes",
        "connection": {"kubeconfigPath": str(running.plane.kubeconfig), "context": "test"},
        "gateway": {"url": running.gateway.url, "name": gateway.name, "namespace": gateway.namespace},
        "runtimeImage": IMAGE,
        "controlPlaneUrl": control_plane_url,
        "artifacts": {"claim": CLAIM, "root": str(running.artifacts.folder)},
        "jobs": {"namespace": "default"},
        "drain": "5s",
        "preStop": "1s",
    }
