"""Canaries behind Envoy Gateway from end to end: a first group by the beginning of a header, weights, and the way back,
while clients keep sending over HTTP and gRPC, of the group and not, and none of them ever gets an error.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster._support.gateway.envoy_gateway import EnvoyGateway
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import Traffic

pytestmark = pytest.mark.cluster
_GROUP = [{"header": "x-client", "prefix": "app/2."}]
_STEPS = [{"match": _GROUP, "pause": True}, {"weight": 50, "pause": True}, {"weight": 90, "hold": "2s"}]


@pytest.fixture
def behind_envoy_gateway(db: None, plane: ControlPlane, tmp_path: Path) -> Iterator[OnKubernetes]:
    with harness(plane, tmp_path, gateway_of=EnvoyGateway) as running:
        platform = OnKubernetes(harness=running)
        yield platform
        platform.remove()


def test_a_group_then_a_share_then_all_get_the_canary_and_no_request_fails(behind_envoy_gateway: OnKubernetes) -> None:
    platform = behind_envoy_gateway
    platform.version(1)
    platform.version(2)
    platform.policy(name="group-first", steps=_STEPS, scaleDownDelay="2s")
    platform.apply(policy="group-first", replicas=2)
    platform.until_so(lambda: platform.view().phase == "Ready")
    platform.until_routed()

    url = platform.harness.gateway.url
    grouped, others = Traffic(url, clients=1, headers={"x-client": "app/2.7"}), Traffic(url, clients=1)
    with grouped, others:
        others.until_sent(20, within_s=60)
        _to_the_group(platform, grouped, others)
        platform.promote()
        platform.until_so(lambda: platform.rollout().phase == "Paused" and platform.rollout().step_index == 1)
        _until_both(platform, others)
        platform.abort()
        platform.until_so(lambda: platform.rollout().phase == "Aborted")
        _until_only(platform, "digits-00001", grouped, others)

        _to_the_group(platform, grouped, others)
        platform.promote()
        platform.until_so(lambda: platform.rollout().phase == "Paused" and platform.rollout().step_index == 1)
        platform.promote()
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        _until_only(platform, platform.rollout().to_revision.name, grouped, others)
        platform.back()
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        _until_only(platform, platform.rollout().to_revision.name, grouped, others)
    failures = [*grouped.failures, *others.failures]
    assert failures == [], f"of {len(grouped.outcomes) + len(others.outcomes)} requests"


def _to_the_group(platform: OnKubernetes, grouped: Traffic, others: Traffic) -> None:
    """Start a rollout, whose first step gives the group the canary and nobody else."""
    platform.start("2")
    platform.until_so(lambda: platform.rollout().phase == "Paused")
    sent = len(others.outcomes)
    platform.until_only(grouped, platform.rollout().to_revision.name)
    others.until_sent(20, within_s=60)
    assert {name for name, _ in others.outcomes[sent:]} == {"digits-00001"}


def _until_both(platform: OnKubernetes, traffic: Traffic) -> None:
    platform.until_so(lambda: len({name for name, _ in traffic.outcomes[-20:]}) == 2)


def _until_only(platform: OnKubernetes, revision: str, *all_traffic: Traffic) -> None:
    for traffic in all_traffic:
        platform.until_only(traffic, revision)
