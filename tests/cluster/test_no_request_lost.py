"""Whole rollouts under load, while pods go: no client of the gateway ever sees a failure that could be avoided."""

import pytest

from tests.cluster._support.platform import OnKubernetes
from tests.integrations._support.runtimes import Traffic, until

pytestmark = pytest.mark.cluster
GATE = {"minRequests": 30, "maxErrorPercent": 1, "maxErrorIncreasePercent": 1, "maxSlowPercent": 100}
CLIENTS = 4  # two over HTTP, two over gRPC, each with one request at a time


def serving(platform: OnKubernetes) -> None:
    """Serve version 1 with two replicas, under a policy that judges and then waits for a person."""
    platform.version(1)
    platform.version(2)
    steps = [{"weight": 20, "analysis": GATE}, {"weight": 60, "pause": True}]
    platform.policy(name="judged", steps=steps, scaleDownDelay="2s")
    platform.apply(policy="judged", replicas=2)
    platform.until_so(lambda: platform.view().phase == "Ready")
    platform.until_routed()
    platform.until_ready("digits-00001", 2)


def test_no_request_is_lost_while_stables_pods_are_deleted_one_by_one(on_kubernetes: OnKubernetes) -> None:
    platform = on_kubernetes
    serving(platform)
    with Traffic(platform.harness.gateway.url, clients=CLIENTS // 2) as traffic:
        traffic.until_sent(20, within_s=120)
        platform.start("2")
        for replica in platform.seen("digits-00001").replicas:
            platform.delete_pod("digits-00001", replica.name)
            platform.until_ready("digits-00001", 2)
        platform.until_so(lambda: platform.rollout().phase == "Paused")
        assert set(traffic.by_revision()) == {"digits-00001", "digits-00002"}
        platform.abort()
        platform.until_so(lambda: platform.rollout().phase == "Aborted")
        platform.until_only(traffic, "digits-00001")

        platform.start("2")
        platform.until_so(lambda: platform.rollout().phase == "Paused")
        platform.promote()
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        promoted = platform.rollout().to_revision.name
        platform.until_only(traffic, promoted)
        platform.delete_pod(promoted)

        platform.back()
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_only(traffic, platform.rollout().to_revision.name)
    assert traffic.failures == [], f"of {len(traffic.outcomes)} requests"


def test_a_container_that_is_killed_costs_a_few_requests_and_no_more(on_kubernetes: OnKubernetes) -> None:
    platform = on_kubernetes
    serving(platform)
    kubelet, gateway = platform.harness.kubelet, platform.harness.gateway
    with gateway.trying_again(), Traffic(gateway.url, clients=CLIENTS // 2) as traffic:
        traffic.until_sent(20, within_s=120)
        for number, replica in enumerate(platform.seen("digits-00001").replicas, start=1):
            kubelet.pod(replica.name).crash("runtime")
            traffic.until_sent(100, within_s=120)
            platform.until_so(lambda replica=replica: _restarts(platform, replica.name) == 1)
            platform.until_ready("digits-00001", 2)
            # Each client has a request in hand, and its next ones meet sockets of the dead process, which close one by
            # one. If nobody led them elsewhere every second request would fail until the container is back: hundreds.
            assert len(traffic.failures) <= number * 5 * CLIENTS, traffic.failures
        seen = len(traffic.failures)
        traffic.until_sent(100, within_s=120)
        until(lambda: len(traffic.failures) == seen, "nothing fails any more")


def _restarts(platform: OnKubernetes, pod: str) -> int:
    return next((each.restarts for each in platform.seen("digits-00001").replicas if each.name == pod), 0)
