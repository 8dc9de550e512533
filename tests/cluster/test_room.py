"""A node that is too small for a canary beside stable: the real scheduler, and what is said before and meanwhile."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from deployments.services import rollout_plan
from integrations.clusters.base import Nodes, Observed
from tests.cluster._support.platform import OnKubernetes
from tests.cluster.harness import harness
from tests.cluster.plane import ControlPlane
from tests.integrations._support.runtimes import V2_SERVER, Traffic, infer_json

pytestmark = pytest.mark.cluster
_WITHIN_S = 600.0


@dataclass
class OnSmallNode(OnKubernetes):
    """The platform of the reconciler's tests on a cluster whose only node has room for a replica or two."""

    def survey(self, namespace: str, name: str) -> tuple[Observed, Nodes]:
        return self.harness.driver.observe(namespace, name), self.harness.driver.inventory(with_nodes=True)

    def plan(self, policy: str) -> Any:
        return rollout_plan(
            namespace="default",
            name="digits",
            version="2",
            policy=policy,
            actor="alice",
            now=self.clock(),
            survey=self.survey,
        ).plan


@pytest.fixture
def platform(db: None, plane: ControlPlane, tmp_path: Path) -> Iterator[OnSmallNode]:
    """Give a service of two replicas, each half a core, on a node of 1.2 cores."""
    with harness(plane, tmp_path, runtime=[sys.executable, str(V2_SERVER)], cpu_cores=1.2) as running:
        made = OnSmallNode(harness=running)
        made.version(1)
        made.version(2)
        made.policy(name="half", steps=[{"weight": 50}], scaleDownDelay="1s", progressDeadline="24h")
        made.apply(policy="half", replicas=2)
        made.until_so(lambda: made.view().phase == "Ready")
        yield made


def test_what_does_not_fit_is_said_before_it_starts_and_while_it_waits(platform: OnSmallNode) -> None:
    room = platform.plan("half").room
    assert (room.fits, room.pods, room.placed) == (False, 2, 0)
    assert "no node has room for 2 of digits-00002 (node-" in room.message
    assert " has 0.18 CPU, " in room.message

    platform.start("2", "half")
    platform.until_so(lambda: "no node takes it" in platform.rollout().reason_message)
    assert platform.rollout().reason_code == "CanaryStarting"
    assert "Insufficient cpu" in platform.view().rollout.waits.evidence  # type: ignore[union-attr]


def test_without_surge_it_goes_through_and_no_request_fails(platform: OnSmallNode) -> None:
    platform.policy(name="shared", steps=[{"weight": 50}], surge=False, progressDeadline="24h")
    room = platform.plan("shared").room
    assert room.fits is True
    assert "50 %: 1 of the canary and 1 of stable; all: 1 of the canary and 1 of stable" in room.message

    url = f"{platform.harness.gateway.url}/serving/default/digits/v2/models/digits/infer"
    platform.until_so(lambda: httpx.post(url, content=infer_json(), timeout=30, trust_env=False).is_success)
    with Traffic(platform.harness.gateway.url, clients=1) as traffic:
        traffic.until_sent(20, within_s=60)
        platform.start("2", "shared")
        platform.until_so(lambda: platform.rollout().phase == "Healthy")
        platform.until_so(lambda: _ready(platform) == {"digits-00002": 2})
        platform.until_so(lambda: {name for name, _ in traffic.outcomes[-20:]} == {"digits-00002"})
        sent = len(traffic.outcomes)
    assert traffic.failures == [], f"of {sent} requests"


def _ready(platform: OnSmallNode) -> dict[str, int]:
    seen = platform.harness.driver.observe("default", "digits")
    return {each.name: each.ready_replicas for each in seen.revisions}
