"""A canary behind Envoy Gateway from end to end: a first group by the beginning of a header, weights, and the way back,
while clients keep sending over HTTP and gRPC.

That no request fails is not asserted here: Envoy Gateway 1.9 gives Envoy the route to a backend that got no requests
before without waiting for that backend's cluster, and a few requests are answered 500 (`cluster_not_found`).
"""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from deployments.services import rollout_promote
from tests.cluster.envoy_gateway import EnvoyGateway
from tests.cluster.harness import harness
from tests.cluster.plane import ControlPlane
from tests.cluster.platform import OnKubernetes
from tests.integrations.conftest import Traffic, infer_json

pytestmark = pytest.mark.cluster
_STEPS = [{"match": [{"header": "x-client", "prefix": "app/2."}], "pause": True}, {"weight": 50, "hold": "2s"}]


@pytest.fixture
def behind_envoy_gateway(db: None, plane: ControlPlane, tmp_path: Path) -> Iterator[OnKubernetes]:
    with harness(plane, tmp_path, gateway_of=EnvoyGateway) as running:
        platform = OnKubernetes(harness=running)
        yield platform
        platform.remove()


def test_a_group_then_a_share_then_all_get_the_canary_and_the_way_back_leads_back(
    behind_envoy_gateway: OnKubernetes,
) -> None:
    platform = behind_envoy_gateway
    platform.version(1)
    platform.version(2)
    platform.policy(name="group-first", steps=_STEPS, scaleDownDelay="2s")
    platform.apply(policy="group-first", replicas=2)
    platform.until_so(lambda: platform.view().phase == "Ready")
    platform.until_routed()

    with Traffic(platform.harness.gateway.url, clients=1) as traffic:
        traffic.until_sent(20, within_s=60)
        platform.start("2")
        platform.until_so(lambda: platform.rollout().phase == "Paused")
        assert _answers(platform, "app/2.7") == "digits-00002"
        assert _answers(platform, "app/12.7") == "digits-00001"
        assert set(traffic.by_revision()) == {"digits-00001"}
        rollout_promote(rollout_id=platform.rollout().pk, actor="alice", now=platform.clock())
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_only(traffic, "digits-00002")
        platform.back()
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_only(traffic, platform.rollout().to_revision.name)


def _answers(platform: OnKubernetes, client: str) -> str:
    """Return the revision that answers a client which says what it is."""
    url = f"{platform.harness.gateway.url}/serving/default/digits/v2/models/digits/infer"
    answer = httpx.post(url, content=infer_json(), headers={"x-client": client}, timeout=20, trust_env=False)
    return answer.raise_for_status().headers["fairlead-revision"]
