"""A canary on Kubernetes from end to end: the reconciler on its database, the driver, pods of the real runtime, and
clients that keep sending over HTTP and gRPC. No client ever sees a failure.
"""

import pytest

from integrations.clusters.kubernetes.api import resource_types
from integrations.clusters.kubernetes.manifests.names import SERVICE
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import Harness
from tests.integrations._support.runtimes import Traffic

pytestmark = pytest.mark.cluster


def test_a_canary_is_promoted_and_rolled_back_and_no_client_notices(on_kubernetes: OnKubernetes) -> None:
    platform, cluster = on_kubernetes, on_kubernetes.harness
    platform.version(1)
    platform.version(2)
    platform.policy(name="by-weight", steps=[{"weight": 50, "hold": "2s"}], scaleDownDelay="2s")
    platform.apply(policy="by-weight", replicas=2)
    platform.until_so(lambda: platform.view().phase == "Ready")
    platform.until_routed()

    with Traffic(cluster.gateway.url, clients=1) as traffic:
        traffic.until_sent(20, within_s=60)
        platform.start("2")
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        seen = traffic.by_revision()
        assert min(seen["digits-00001"], seen["digits-00002"]) > 0, seen
        platform.until_only(traffic, "digits-00002")

        platform.delete_pod("digits-00002")
        platform.until_ready("digits-00002", 2)

        platform.back()
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_only(traffic, platform.rollout().to_revision.name)
        sent = len(traffic.outcomes)
    assert traffic.failures == [], f"of {sent} requests"

    platform.remove()
    assert _left(cluster) == []


def _left(cluster: Harness) -> list[str]:
    """Return what is still there of the service."""
    with cluster.plane.client() as client:
        answers = [
            client.get(kind.path("default"), params={"labelSelector": f"{SERVICE}=digits"}).json()
            for kind in (*resource_types.PRUNED, resource_types.POD, resource_types.CONFIG_MAP)
        ]
    return [each["metadata"]["name"] for answer in answers for each in answer["items"]]
